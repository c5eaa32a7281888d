"""Decoders with an SSRU in place of self-attention, and decoding that begins with zeros."""

from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman_training.models.attention import MultiHeadAttention
from dragoman_training.models.layout import Layout
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.ssru import SSRU, scan
from support.models import LENGTHS, TARGET_LENGTHS, VOCABULARY, grid, ssru_model, tiny_model


def plain_states(keep_BTD: Tensor, new_BTD: Tensor) -> Tensor:
    """The recurrence as it is written down, for autograd to differentiate."""
    states = []
    state_BD = torch.zeros_like(new_BTD[:, 0])
    for keep_BD, new_BD in zip(keep_BTD.unbind(1), new_BTD.unbind(1), strict=True):
        state_BD = keep_BD * state_BD + new_BD
        states.append(state_BD)
    return torch.stack(states, dim=1)


def plain_ssru(cell: SSRU, x_BTD: Tensor) -> Tensor:
    """Kim et al.'s formulas, one token after the other."""
    outputs = []
    state_BD = torch.zeros_like(x_BTD[:, 0])
    for x_BD in x_BTD.unbind(1):
        f_BD = torch.sigmoid(x_BD @ cell.forget.weight.T + cell.forget.bias)
        state_BD = f_BD * state_BD + (1 - f_BD) * (x_BD @ cell.input.weight.T)
        outputs.append(state_BD.clamp(min=0))
    return torch.stack(outputs, dim=1)


def random_pair(sentences: int, positions: int, width: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(positions)
    shape = (sentences, positions, width)
    keep = torch.rand(shape, generator=generator, dtype=torch.float64)
    new = torch.randn(shape, generator=generator, dtype=torch.float64)
    return keep.requires_grad_(), new.requires_grad_()


@pytest.mark.parametrize("positions", [1, 2, 7])
def test_the_scan_and_its_gradients_are_those_of_the_plain_recurrence(positions: int) -> None:
    keep, new = random_pair(3, positions, 4)
    assert torch.autograd.gradcheck(scan, (keep, new))
    states = scan(keep, new)
    expected = plain_states(keep, new)
    torch.testing.assert_close(states, expected, atol=1e-14, rtol=0)
    weight = torch.randn(states.shape, dtype=torch.float64)
    ours = torch.autograd.grad((states * weight).sum(), (keep, new))
    theirs = torch.autograd.grad((expected * weight).sum(), (keep, new))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-13, rtol=0)


def test_a_cell_computes_the_formulas_of_its_paper() -> None:
    torch.manual_seed(1)
    cell = SSRU(8).double()
    lengths = torch.tensor([5, 1, 7])
    layout = Layout.of(lengths)
    x_BTD = torch.randn(3, 7, 8, dtype=torch.float64)
    ours = cell(layout.pack(x_BTD), layout)
    torch.testing.assert_close(ours, layout.pack(plain_ssru(cell, x_BTD)), atol=1e-12, rtol=0)


def test_a_state_is_kept_in_float32_where_products_are_not() -> None:
    torch.manual_seed(2)
    cell = SSRU(8)
    with torch.no_grad():
        cell.forget.bias.fill_(8.0)  # nearly all is kept, so in bfloat16 nothing would be added
    x_BTD = torch.randn(1, 1, 8).expand(1, 300, 8)
    layout = Layout.of(torch.tensor([300]))
    with torch.no_grad():
        expected = cell(layout.pack(x_BTD), layout)
        with torch.autocast("cpu", torch.bfloat16):
            found = cell(layout.pack(x_BTD), layout)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0.01, rtol=0.05)


ARCHITECTURES: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "activation": "swish"},
    {"positions": "marian", "decoder_start": "zero", "output_bias": True},
    {"positions": "learned", "tied_embeddings": "target"},
]


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_steps_give_what_teacher_forcing_gives(architecture: dict[str, Any]) -> None:
    model = ssru_model(**architecture).double()
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    with torch.no_grad():
        forced = model(source, LENGTHS, target, TARGET_LENGTHS).log_softmax(-1)
        state = model.start(model.encode(source, LENGTHS))
        for t in range(target.shape[1]):
            stepped, state = model.step(target[:, t], state)
            real = t < TARGET_LENGTHS
            torch.testing.assert_close(stepped[real].double(), forced[real, t], atol=1e-5, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_a_sentence_does_not_feel_the_padding_of_others(architecture: dict[str, Any]) -> None:
    model = ssru_model(**architecture)
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    with torch.no_grad():
        together = model(source, LENGTHS, target, TARGET_LENGTHS)
        for row, (s, t) in enumerate(zip(LENGTHS, TARGET_LENGTHS, strict=True)):
            alone = model(
                source[row : row + 1, :s], LENGTHS[row : row + 1], target[row : row + 1, :t]
            )
            torch.testing.assert_close(together[row, :t], alone[0], atol=1e-5, rtol=1e-5)


def test_gradients_do_not_come_from_padding_or_from_later_tokens() -> None:
    model = ssru_model().train()
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    layout = Layout.of(TARGET_LENGTHS)
    x = torch.randn(int(TARGET_LENGTHS.sum()), 16, requires_grad=True)
    cell = model._decoder_layers[0].ssru
    place = int(TARGET_LENGTHS[0]) - 3  # three tokens of the first sentence are after it
    (grad,) = torch.autograd.grad(cell(x, layout)[place].sum(), x)
    assert grad[: place + 1].abs().sum(dim=1).gt(0).all()
    assert not grad[place + 1 :].any()
    together = model(source, LENGTHS, target, TARGET_LENGTHS)
    (grad,) = torch.autograd.grad(
        together[target != 0].square().sum(), model._decoder_layers[0].ssru.input.weight
    )
    total = torch.zeros_like(grad)
    for row, (s, t) in enumerate(zip(LENGTHS, TARGET_LENGTHS, strict=True)):
        alone = model(source[row : row + 1, :s], LENGTHS[row : row + 1], target[row : row + 1, :t])
        total += torch.autograd.grad(
            alone.square().sum(), model._decoder_layers[0].ssru.input.weight
        )[0]
    torch.testing.assert_close(grad, total, atol=1e-3, rtol=1e-4)


def test_states_move_with_their_rows() -> None:
    model = ssru_model()
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    rows = torch.tensor([3, 1, 1])
    with torch.no_grad():
        state = model.start(model.encode(source, LENGTHS))
        for t in range(3):
            _, state = model.step(target[:, t], state)
        expected, _ = model.step(target[:, 3], state)
        found, _ = model.step(target[rows, 3], state.select(rows))
    torch.testing.assert_close(found, expected[rows], atol=1e-5, rtol=0)


def test_the_weights_have_the_names_that_are_written_down() -> None:
    model = ssru_model()
    layer = {
        name.removeprefix("decoder.1."): tuple(parameter.shape)
        for name, parameter in model.named_parameters()
        if name.startswith("decoder.1.") and name.split(".")[2] in ("ssru", "self_residual")
    }
    assert layer == {
        "ssru.forget.weight": (16, 16),
        "ssru.forget.bias": (16,),
        "ssru.input.weight": (16, 16),
        "self_residual.norm.weight": (16,),
        "self_residual.norm.bias": (16,),
    }
    assert not any("self_attention" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize("decoder", ["attention", "ssru"])
def test_a_decoder_that_begins_with_zeros_does_not_look_at_its_first_token(decoder: str) -> None:
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    other = target.clone()
    other[:, 0] = (target[:, 0] + 1) % VOCABULARY
    last = target.clone()
    last[:, 1] = (target[:, 1] + 1) % VOCABULARY
    with torch.no_grad():
        for start, is_same in (("zero", True), ("token", False)):
            model = tiny_model(decoder=decoder, decoder_start=start)
            found = [model(source, LENGTHS, ids) for ids in (target, other, last)]
            assert torch.equal(found[0], found[1]) == is_same
            assert not torch.equal(found[0], found[2])
            if start == "zero":
                # A token of zeros is what it takes for its first.
                model.target_embedding.table.weight[5] = 0.0
                first = torch.full_like(target[:, :1], 5)
                zeros = torch.cat((first, target[:, 1:]), dim=1)
                told = tiny_model(decoder=decoder)
                told.target_embedding.table.weight[5] = 0.0
                assert torch.equal(model(source, LENGTHS, zeros), told(source, LENGTHS, zeros))


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ValueError, match="decoder is 'gru': it must be one of attention, ssru"):
        TransformerSettings(decoder="gru")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="decoder_start is 'none': it must be one of token, zero"):
        TransformerSettings(decoder_start="none")  # type: ignore[arg-type]


def test_a_cell_is_not_compiled() -> None:
    """Its loop would be compiled anew for every length."""
    compiled = [part for module in ssru_model().compiled_parts() for part in module.modules()]
    assert not any(isinstance(part, SSRU) for part in compiled)
    assert sum(isinstance(part, MultiHeadAttention) for part in compiled) == 4
