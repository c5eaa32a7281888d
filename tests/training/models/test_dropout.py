"""Dropout: its cheap mask drops the share it should, in every place where the paper has it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman_training.models.attention import ScaledDotProductAttention
from dragoman_training.models.dropout import Dropout, keep_mask
from dragoman_training.models.layers import FeedForward, Residual
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Embedding, Transformer
from support.models import tiny_model


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


def dropouts_of(model: Transformer, kind: type[nn.Module]) -> list[Dropout]:
    """The dropouts of all parts of one kind."""
    parts = [part for part in model.modules() if isinstance(part, kind)]
    return [child for part in parts for child in part.children() if isinstance(child, Dropout)]


# Two layers on each side: two embeddings, five residual connections a pair of layers, and so on.
PLACES: dict[type[nn.Module], tuple[str, int]] = {
    Embedding: ("dropout", 2),
    Residual: ("dropout", 10),
    ScaledDotProductAttention: ("attention_dropout", 6),
    FeedForward: ("activation_dropout", 4),
}


def move_in_training(model: Transformer) -> float:
    """How far the scores of training are from those of use; rounding alone makes 1e-6."""
    torch.manual_seed(3)
    source_BS, target_BT = torch.randint(4, 50, (3, 6)), torch.randint(4, 50, (3, 5))
    arguments = (source_BS, torch.tensor([6, 4, 2]), target_BT)
    with torch.no_grad():
        return (model.train()(*arguments) - model.eval()(*arguments)).abs().max().item()


@pytest.mark.parametrize("setting", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_setting_works_alone_and_in_training_only(setting: str) -> None:
    zeros: dict[str, Any] = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    assert move_in_training(tiny_model(**zeros)) == 0
    assert move_in_training(tiny_model(**{**zeros, setting: 0.5})) > 1e-3


@pytest.mark.parametrize("kind", PLACES)
def test_every_place_of_a_dropout_has_its_probability(kind: type[nn.Module]) -> None:
    setting, count = PLACES[kind]
    probabilities: dict[str, Any] = {
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "activation_dropout": 0.3,
    }
    dropouts = dropouts_of(tiny_model(**probabilities), kind)
    assert [dropout.probability for dropout in dropouts] == [probabilities[setting]] * count


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", PLACES)
def test_every_dropout_is_applied(kind: type[nn.Module], norm: str) -> None:
    """Each is turned on with all others off: having a probability is not yet dropping."""
    model = tiny_model(norm=norm)
    for dropout in dropouts_of(model, kind):
        dropout.probability = 0.5
        assert move_in_training(model) > 1e-3
        dropout.probability = 0.0
    assert move_in_training(model) == 0


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_residual_connection_drops_of_the_sublayer_alone(norm: Any) -> None:
    residual = Residual(TransformerSettings(width=16, heads=2, dropout=0.5, norm=norm))
    x_ND = torch.randn(5, 16)
    nothing: Callable[[Tensor], Tensor] = torch.zeros_like
    assert torch.equal(residual.train()(x_ND, nothing), residual.eval()(x_ND, nothing))
