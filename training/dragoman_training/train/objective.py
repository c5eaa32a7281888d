"""What training minimises: the loss of a batch under teacher forcing."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from dragoman_training.data.batch import Batch
from dragoman_training.models.base import AnyModel
from dragoman_training.models.layout import Layout
from dragoman_training.train.loss import TokenLoss, projected_loss


class Objective(nn.Module):
    """Give the decoder the right target so far, and ask for the next token, everywhere at once."""

    def __init__(
        self, model: AnyModel, label_smoothing: float, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self._dtype = dtype

    def forward(self, batch: Batch) -> TokenLoss:
        """Summed over the real tokens of the batch; padding is neither computed nor counted."""
        model = self.model
        with self._autocast(batch.source_BS.device):
            memory = model.encode(batch.source_BS, batch.source_lengths_B)
            layout = Layout.of(batch.target_lengths_B, batch.input_BT.shape[1])
            hidden_ND = model.decode(layout.pack(batch.input_BT), layout, memory)
            return projected_loss(
                hidden_ND,
                model.projection.weight,
                model.projection.bias,
                layout.pack(batch.label_BT),
                self.label_smoothing,
            )

    def _autocast(self, device: torch.device) -> AbstractContextManager[None]:
        if self._dtype is None:
            return nullcontext()
        return torch.autocast(device.type, self._dtype)
