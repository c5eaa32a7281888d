"""Packing: real tokens out of a grid and back."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.models.layout import Layout

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6).map(torch.tensor)


@given(lengths, st.integers(0, 3))
def test_unpacking_then_packing_changes_nothing(lengths_B: torch.Tensor, extra: int) -> None:
    layout = Layout.of(lengths_B, int(lengths_B.max()) + extra)
    tokens = torch.randn(int(lengths_B.sum()), 3)
    grid = layout.unpack(tokens)
    assert grid.shape[:2] == layout.real_BL.shape
    assert torch.equal(layout.pack(grid), tokens)
    assert torch.equal(grid[layout.real_BL], tokens)
    assert layout.full == bool(layout.real_BL.all())


@given(lengths)
def test_positions_count_from_zero_in_each_sentence(lengths_B: torch.Tensor) -> None:
    expected = torch.cat([torch.arange(int(n)) for n in lengths_B])
    assert torch.equal(Layout.of(lengths_B).positions_N, expected)


@given(lengths)
def test_gradients_follow_the_tokens(lengths_B: torch.Tensor) -> None:
    layout = Layout.of(lengths_B)
    tokens = torch.randn(int(lengths_B.sum()), 3, requires_grad=True)
    weights = torch.randn(*layout.real_BL.shape, 3)
    # What is read at padding is masked, as attention does.
    layout.pack(layout.unpack(tokens) * weights).square().sum().backward()
    expected = (2 * tokens * weights[layout.real_BL] ** 2).detach()
    torch.testing.assert_close(tokens.grad, expected)


def test_grid_gradients_are_zero_at_padding() -> None:
    layout = Layout.of(torch.tensor([2, 4]))
    grid = torch.randn(2, 4, 3, requires_grad=True)
    layout.pack(grid).sum().backward()
    assert grid.grad is not None
    assert torch.equal(grid.grad[..., 0], layout.real_BL.float())
