"""The simpler simple recurrent unit: section 3.2 of "From Research to Production and Back:
Ludicrously Fast Neural Machine Translation" (Kim et al., 2019).

It stands in the decoder where self-attention stands otherwise, and remembers one vector and not all
tokens so far. Marian's small models are built with it.

    f = sigmoid(x W_f + b_f);  c <- f c + (1 - f) x W, which begins with 0;  h = relu(c)

Weights, in decoder layer n of a Transformer with ``decoder = "ssru"``:

    decoder.n.ssru.forget.weight  [D, D]   W_f, as [out, in]
    decoder.n.ssru.forget.bias    [D]      b_f
    decoder.n.ssru.input.weight   [D, D]   W, as [out, in]; it has no bias
    decoder.n.self_residual.norm  [D]      weight and bias of the norm after (or before) it

All else is named as it is with self-attention.

Shapes: B sentences, T target positions, D width, N target tokens (packed, see ``layout``).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dragoman_training.models.layout import Layout


class SSRU(nn.Module):
    """A gated average of the tokens so far. Only the gate, and no matrix, reads the past."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget = nn.Linear(width, width)
        self.input = nn.Linear(width, width, bias=False)

    def forward(self, x_ND: Tensor, layout: Layout) -> Tensor:
        """All target tokens at once: teacher forcing."""
        keep_ND, new_ND = self._gated(x_ND)
        state_BTD = scan(layout.unpack(keep_ND), layout.unpack(new_ND))
        return F.relu(layout.pack(state_BTD))

    def start(self, memory_BSD: Tensor) -> Tensor:
        """The state before the first token."""
        return memory_BSD.new_zeros(memory_BSD.shape[0], memory_BSD.shape[2])

    def step(self, x_BD: Tensor, state_BD: Tensor) -> tuple[Tensor, Tensor]:
        """One more token for every sentence: what comes out, and the state after it."""
        keep_BD, new_BD = self._gated(x_BD)
        state_BD = torch.addcmul(new_BD, keep_BD, state_BD)
        return F.relu(state_BD), state_BD

    def _gated(self, x_ND: Tensor) -> tuple[Tensor, Tensor]:
        """How much of the state is kept, and what is added to it."""
        forget_ND, input_ND = self.forget(x_ND), self.input(x_ND)
        if forget_ND.dtype in (torch.bfloat16, torch.float16):
            # A state that is mostly kept would lose in them what each token adds.
            forget_ND, input_ND = forget_ND.float(), input_ND.float()
        keep_ND = forget_ND.sigmoid()
        return keep_ND, (1 - keep_ND) * input_ND


def scan(keep_BTD: Tensor, new_BTD: Tensor) -> Tensor:
    """The states c[t] = keep[t] c[t-1] + new[t], from c[-1] = 0.

    Everything that is not sequential is outside, so each position costs one operation.
    """
    states_BTD: Tensor = _Scan.apply(keep_BTD, new_BTD)  # type: ignore[no-untyped-call]
    return states_BTD


class _Scan(torch.autograd.Function):
    """Written out, because autograd would keep a node, and a gradient of the whole batch, for the
    slice that each position is."""

    @staticmethod
    def forward(ctx: Any, keep_BTD: Tensor, new_BTD: Tensor) -> Tensor:
        states_BTD = torch.empty_like(new_BTD)
        states_BTD[:, 0] = new_BTD[:, 0]
        for t in range(1, new_BTD.shape[1]):
            torch.addcmul(new_BTD[:, t], keep_BTD[:, t], states_BTD[:, t - 1], out=states_BTD[:, t])
        ctx.save_for_backward(keep_BTD, states_BTD)
        return states_BTD

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        keep_BTD, states_BTD = ctx.saved_tensors
        # What a state adds to is the state after it, times what is kept of it there.
        grad_BTD = grads[0].clone()
        for t in range(grad_BTD.shape[1] - 2, -1, -1):
            grad_BTD[:, t].addcmul_(keep_BTD[:, t + 1], grad_BTD[:, t + 1])
        grad_keep_BTD = torch.zeros_like(grad_BTD)
        torch.mul(grad_BTD[:, 1:], states_BTD[:, :-1], out=grad_keep_BTD[:, 1:])
        return grad_keep_BTD, grad_BTD
