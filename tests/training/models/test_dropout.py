"""Dropout's cheap mask drops the share it should, and scales up the rest."""

import pytest
import torch

from dragoman_training.models.dropout import Dropout, keep_mask


@pytest.mark.parametrize("probability", [0.001, 0.1, 0.3, 0.5, 0.9])
def test_drops_the_given_share_and_keeps_the_mean(probability: float) -> None:
    torch.manual_seed(0)
    mask = keep_mask(torch.Size((1000, 1001)), probability, torch.float32)
    dropped = (mask == 0).double().mean().item()
    deviation = (probability * (1 - probability) / mask.numel()) ** 0.5
    assert abs(dropped - probability) < 5 * deviation + 1 / 65536
    assert mask.max().item() == pytest.approx(1 / (1 - probability), rel=1e-4)
    assert len(mask.unique()) == 2


def test_neighbours_are_independent() -> None:
    """Four elements share one draw: they must not share a fate."""
    torch.manual_seed(0)
    dropped = (keep_mask(torch.Size((100_000, 4)), 0.5, torch.float32) == 0).double()
    correlation = torch.corrcoef(dropped.T)
    assert (correlation - torch.eye(4)).abs().max() < 0.02


def test_the_seed_decides() -> None:
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(keep_mask(torch.Size((7, 9)), 0.5, torch.float32))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_does_nothing_outside_training_or_at_zero() -> None:
    x = torch.randn(5, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_gradient_is_the_mask() -> None:
    torch.manual_seed(0)
    x = torch.ones(10, 10, requires_grad=True)
    y = Dropout(0.5).train()(x)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, y.detach())
