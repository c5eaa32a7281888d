"""The fused loss equals projecting and calling PyTorch's cross entropy."""

import pytest
import torch
import torch.nn.functional as F

from dragoman_training.train import loss as loss_module
from dragoman_training.train.loss import projected_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("tokens", [1, 7, 64])
def test_equals_cross_entropy_and_its_gradients(
    monkeypatch: pytest.MonkeyPatch, smoothing: float, with_bias: bool, tokens: int
) -> None:
    monkeypatch.setattr(loss_module, "PIECE", 10)
    torch.manual_seed(0)
    hidden = torch.randn(tokens, 16, requires_grad=True)
    weight = torch.randn(31, 16, requires_grad=True)
    bias = torch.randn(31, requires_grad=True) if with_bias else None
    labels = torch.randint(31, (tokens,))
    inputs = [x for x in (hidden, weight, bias) if x is not None]

    logits = F.linear(hidden, weight, bias)
    expected = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    expected_grads = torch.autograd.grad(expected * 0.37, inputs)
    ours = projected_loss(hidden, weight, bias, labels, smoothing)
    grads = torch.autograd.grad(ours.smoothed * 0.37, inputs)

    torch.testing.assert_close(ours.smoothed, expected)
    torch.testing.assert_close(ours.nll, F.cross_entropy(logits, labels, reduction="sum"))
    assert not ours.nll.requires_grad
    for grad, expected_grad in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(grad, expected_grad, atol=1e-5, rtol=1e-4)


def test_banned_tokens_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It equals the loss of a vocabulary without them; where one is right, nothing is learnt."""
    monkeypatch.setattr(loss_module, "PIECE", 10)
    torch.manual_seed(0)
    hidden = torch.randn(25, 16, requires_grad=True)
    weight = torch.randn(31, 16, requires_grad=True)
    bias = torch.randn(31)
    bias[[4, 30]] = -torch.inf
    bias.requires_grad_()
    labels = torch.randint(31, (25,))
    labels[[3, 11]] = torch.tensor([30, 4])
    said = bias.isfinite()
    learnt = said[labels]
    inputs = (hidden, weight, bias)

    logits = F.linear(hidden, weight, bias)[learnt][:, said]
    renumbered = (said.cumsum(0) - 1)[labels[learnt]]
    expected = F.cross_entropy(logits, renumbered, label_smoothing=0.1, reduction="sum")
    ours = projected_loss(hidden, weight, bias, labels, 0.1)
    torch.testing.assert_close(ours.smoothed, expected)
    for grad, expected_grad in zip(
        torch.autograd.grad(ours.smoothed, inputs),
        torch.autograd.grad(expected, inputs),
        strict=True,
    ):
        torch.testing.assert_close(grad, expected_grad, atol=1e-5, rtol=1e-4)


def test_large_logits_do_not_overflow() -> None:
    hidden = torch.full((1, 4), 100.0)
    weight = torch.eye(5, 4) * 50
    loss = projected_loss(hidden, weight, None, torch.tensor([4]), 0.0)
    assert loss.nll.item() == pytest.approx(5000 + torch.tensor(4.0).log().item())


def test_runs_in_bfloat16_under_autocast() -> None:
    torch.manual_seed(0)
    hidden = torch.randn(20, 16, requires_grad=True)
    weight = torch.randn(31, 16, requires_grad=True)
    labels = torch.randint(31, (20,))
    exact = projected_loss(hidden, weight, None, labels, 0.1).smoothed
    with torch.autocast("cpu", torch.bfloat16):
        rough = projected_loss(hidden, weight, None, labels, 0.1).smoothed
    assert rough.dtype == torch.float32
    assert rough.item() != exact.item()
    torch.testing.assert_close(rough, exact, rtol=2e-2, atol=0)
    rough.backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
