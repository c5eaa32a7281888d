"""Where the real tokens of a padded batch are, so that padding is not computed.

Everything but attention treats tokens one by one, so the model keeps a batch *packed*: the real
tokens of all sentences in one list. Only attention needs the rectangular *grid* of sentences by
positions, and a :class:`Layout` moves between the two.

Shapes: B sentences, L positions (the longest sentence), N real tokens, D width.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of real tokens in a grid of B sentences by L positions."""

    real_BL: Tensor
    """True where there is a token, False where there is padding."""
    place_N: Tensor
    """For each token its place in the flattened grid."""
    token_BL: Tensor
    """For each place in the grid its token; for padding, any token."""
    full: bool
    """No padding anywhere: packing is a change of shape."""

    @classmethod
    def of(cls, lengths_B: Tensor, longest: int | None = None) -> "Layout":
        """The layout of sentences that each begin at position 0."""
        longest = int(lengths_B.max()) if longest is None else longest
        positions_L = torch.arange(longest, device=lengths_B.device)
        real_BL = positions_L < lengths_B[:, None]
        flat = real_BL.flatten()
        place_N = flat.nonzero().squeeze(1)
        token_BL = (flat.cumsum(0) - 1).clamp_(min=0).view_as(real_BL)
        return cls(real_BL, place_N, token_BL, place_N.numel() == real_BL.numel())

    @property
    def positions_N(self) -> Tensor:
        """Each token's position in its own sentence."""
        return self.place_N % self.real_BL.shape[1]

    def pack(self, x_BLD: Tensor) -> Tensor:
        """Grid to list. Works on the ids of a batch as on its vectors."""
        if self.full:
            return x_BLD.flatten(0, 1)
        x_PD = x_BLD.flatten(0, 1)
        if not x_PD.requires_grad:
            return x_PD.index_select(0, self.place_N)
        packed: Tensor = _Pack.apply(x_PD, self.place_N)  # type: ignore[no-untyped-call]
        return packed

    def unpack(self, x_ND: Tensor) -> Tensor:
        """List to grid. What stands at padding is finite but meaningless: mask it."""
        rows, longest = self.real_BL.shape
        if self.full:
            return x_ND.unflatten(0, (rows, longest))
        if x_ND.requires_grad:
            x_PD: Tensor = _Unpack.apply(x_ND, self.token_BL.flatten(), self.place_N)  # type: ignore[no-untyped-call]
        else:
            x_PD = x_ND.index_select(0, self.token_BL.flatten())
        return x_PD.unflatten(0, (rows, longest))


# Both directions select rows, and so do their gradients; autograd would add rows up one by one,
# because it can't know that no row is selected twice.


class _Pack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_PD: Tensor, place_N: Tensor) -> Tensor:
        ctx.save_for_backward(place_N)
        ctx.places = x_PD.shape[0]
        return x_PD.index_select(0, place_N)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (grad_ND,) = grads
        (place_N,) = ctx.saved_tensors
        grad_PD = grad_ND.new_zeros(ctx.places, *grad_ND.shape[1:])
        return grad_PD.index_copy_(0, place_N, grad_ND), None


class _Unpack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, token_P: Tensor, place_N: Tensor) -> Tensor:
        ctx.save_for_backward(place_N)
        return x_ND.index_select(0, token_P)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        # The gradient at padding is dropped: nothing that reads the grid may let padding through.
        (grad_PD,) = grads
        (place_N,) = ctx.saved_tensors
        return grad_PD.index_select(0, place_N), None, None
