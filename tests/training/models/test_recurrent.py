"""Recurrent models, with and without attention: against PyTorch's GRU, and what must hold of both.

Training, search, evaluation and checkpoints are those of the Transformer, so what is tested here is
that a recurrent model is a model like any other.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman_export.errors import ExportError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.source import origin_of
from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import BEGIN, END
from dragoman_training.errors import CheckpointError
from dragoman_training.models.attention import record_attention
from dragoman_training.models.build import build_model
from dragoman_training.models.recurrent.layers import AttentiveDecoder, gru_cell
from dragoman_training.models.recurrent.model import RecurrentModel
from dragoman_training.models.settings import RecurrentSettings
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.translate.search import beam_search, default_limit, greedy_search
from support.checkpoints import checkpoint_of
from support.corpora import quiet
from support.models import LENGTHS, TARGET_LENGTHS, VOCABULARY, grid, random_sources

CPU = torch.device("cpu")
KINDS = [(attention, layers) for attention in ("none", "additive") for layers in (1, 3)]
every_kind = pytest.mark.parametrize(("attention", "layers"), KINDS)


def tiny(
    attention: str = "additive", layers: int = 1, vocabulary: int = VOCABULARY, **changes: Any
) -> RecurrentModel:
    options: dict[str, Any] = {
        "attention": attention,
        "layers": layers,
        "width": 24,
        "embedding": 16,
        "dropout": 0.0,
        "max_length": 40,
        "tied_embeddings": "none",
    }
    torch.manual_seed(3)
    model = RecurrentModel(
        RecurrentSettings(**{**options, **changes}),
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # fresh biases are zero: a mix-up would go unseen
                parameter.add_(0.2 * torch.randn(parameter.shape))
        model.projection.weight.mul_(6.0)
    return model.eval()


@every_kind
def test_steps_equal_teacher_forcing_and_rows_can_be_reordered(attention: str, layers: int) -> None:
    model = tiny(attention, layers)
    source, target = grid(LENGTHS, 1), grid(torch.tensor([7, 7, 7, 7]), 2)
    order = torch.tensor([2, 0, 1, 3])
    with torch.no_grad():
        whole = model(source, LENGTHS, target).log_softmax(-1)
        assert whole.std() > 0.3  # the comparison is not of what is all the same
        state = model.start(model.encode(source, LENGTHS))
        for t in range(7):
            assert state.length == t
            log_probs, state = model.step(target[:, t], state)
            torch.testing.assert_close(log_probs, whole[:, t], atol=1e-5, rtol=1e-5)
            state = state.select(order)
            target, whole = target[order], whole[order]


@every_kind
def test_rows_can_be_dropped_and_doubled(attention: str, layers: int) -> None:
    model = tiny(attention, layers)
    source = grid(LENGTHS, 1)
    rows = torch.tensor([3, 3, 1])
    with torch.no_grad():
        _, state = model.step(torch.full((4,), BEGIN), model.start(model.encode(source, LENGTHS)))
        expected, _ = model.step(torch.tensor([9, 9, 9, 9]), state)
        found, _ = model.step(torch.tensor([9, 9, 9]), state.select(rows))
    torch.testing.assert_close(found, expected[rows], atol=1e-6, rtol=1e-6)
    assert (found[0] - found[2]).abs().max() > 0.01


@every_kind
def test_a_sentence_does_not_feel_the_padding_of_others(attention: str, layers: int) -> None:
    model = tiny(attention, layers)
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    with torch.no_grad():
        together = model(source, LENGTHS, target, TARGET_LENGTHS)
        wider = torch.cat((source, torch.full((4, 5), 7)), 1)
        padded = model(wider, LENGTHS, target, TARGET_LENGTHS)
        for row, (s, t) in enumerate(zip(LENGTHS, TARGET_LENGTHS, strict=True)):
            torch.testing.assert_close(together[row, :t], padded[row, :t], atol=1e-5, rtol=1e-5)
            one = slice(row, row + 1)
            alone = model(source[one, :s], LENGTHS[one], target[one, :t])
            torch.testing.assert_close(together[row, :t], alone[0], atol=1e-5, rtol=1e-5)


@every_kind
def test_a_later_token_changes_no_earlier_output_and_an_earlier_one_every_later(
    attention: str, layers: int
) -> None:
    model = tiny(attention, layers).double()
    source, target = grid(LENGTHS[:1], 1), grid(torch.tensor([8]), 2)
    other = target.clone()
    other[0, 4] = 49 if target[0, 4] != 49 else 48
    with torch.no_grad():
        moved = (model(source, LENGTHS[:1], target) - model(source, LENGTHS[:1], other)).abs()
    assert (moved[0].amax(-1) > 1e-6).tolist() == [False] * 4 + [True] * 4


@every_kind
def test_every_source_token_matters_and_its_order(attention: str, layers: int) -> None:
    model = tiny(attention, layers)
    source, target = grid(torch.tensor([6]), 1), grid(torch.tensor([5]), 2)
    lengths = torch.tensor([6])
    with torch.no_grad():
        before = model(source, lengths, target)
        for place in range(6):
            other = source.clone()
            other[0, place] = (source[0, place] - 4 + 7) % (VOCABULARY - 4) + 4
            assert (model(other, lengths, target) - before).abs().max() > 1e-4
        assert (model(source.flip(1), lengths, target) - before).abs().max() > 1e-2


@every_kind
@pytest.mark.parametrize("tied", ["all", "none"])
def test_gradients_reach_every_weight(attention: str, layers: int, tied: str) -> None:
    model = tiny(attention, layers, tied_embeddings=tied, output_bias=True).train()
    scores = model(grid(LENGTHS, 1), LENGTHS, grid(TARGET_LENGTHS, 2), TARGET_LENGTHS)
    scores[TARGET_LENGTHS[:, None] > torch.arange(8)].logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_the_cell_is_that_of_pytorch() -> None:
    torch.manual_seed(0)
    cell = nn.GRUCell(5, 7)
    x, state = torch.randn(4, 5), torch.randn(4, 7)
    gates = (x @ cell.weight_ih.T + cell.bias_ih, state @ cell.weight_hh.T + cell.bias_hh)
    torch.testing.assert_close(gru_cell(*gates, state), cell(x, state))


@torch.no_grad()
def test_with_attention_it_is_bahdanaus_formula_step_by_step() -> None:
    """For one sentence, with a plain GRU cell and the alignment model written out."""
    model = tiny("additive")
    decoder = model.decoder
    assert isinstance(decoder, AttentiveDecoder)
    source, target = grid(torch.tensor([6]), 1), grid(torch.tensor([5]), 2)
    scale = 16**0.5
    annotations, last = model.encoder.gru(model.source_table(source) * scale)
    cell = nn.GRUCell(16 + 48, 24)
    cell.weight_ih.copy_(torch.cat((decoder.from_token.weight, decoder.from_context.weight), 1))
    cell.bias_ih.copy_(decoder.from_token.bias)
    cell.weight_hh.copy_(decoder.from_state.weight)
    cell.bias_hh.copy_(decoder.from_state.bias)
    state = torch.tanh(decoder.first(torch.cat((last[0], last[1]), -1)))
    align = decoder.attention
    scores = []
    for token in target[0]:
        energies = [
            (align.energy.weight[0] * torch.tanh(align.query(state[0]) + align.key(annotation)))
            .sum()
            .exp()
            for annotation in annotations[0]
        ]
        weights = torch.stack(energies) / sum(energies)
        context = sum(w * h for w, h in zip(weights, annotations[0], strict=True))[None]
        embedded = model.target_table(token)[None] * scale
        state = cell(torch.cat((embedded, context), -1), state)
        read = torch.tanh(model.readout(torch.cat((state, context, embedded), -1)))
        scores.append(model.projection(read)[0])
    found = model(source, torch.tensor([6]), target)[0]
    torch.testing.assert_close(found, torch.stack(scores), atol=1e-5, rtol=1e-5)


def test_attention_weights_sum_to_one_and_pass_over_padding() -> None:
    model = tiny("additive", 2)
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    with torch.no_grad(), record_attention(model) as recorded:
        model(source, LENGTHS, target, TARGET_LENGTHS)
    assert list(recorded) == ["decoder"] == model.cross_attentions()
    weights = torch.cat(recorded["decoder"], dim=2)
    assert weights.shape == (4, 1, 8, 9)
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 1, 8))
    assert weights.masked_select((source == 0)[:, None, None, :]).sum() == 0
    assert (weights[0, 0, 0, :5] > 0).all()
    assert weights[1, 0, :2].std() > 1e-3
    with record_attention(tiny("none")) as recorded:
        assert recorded == {}


@pytest.mark.parametrize("attention", ["none", "additive"])
@pytest.mark.parametrize("beam", [1, 4])
def test_search_finds_the_same_in_company_and_scores_what_it_found(
    attention: str, beam: int
) -> None:
    model = tiny(attention)
    sources = random_sources(12, seed=6)
    limits = [default_limit(len(s), 16) for s in sources]
    together = beam_search(model, *pad_sources(sources, CPU), limits, beam)
    for source, limit, (found,) in zip(sources, limits, together, strict=True):
        ((alone,),) = beam_search(model, *pad_sources([source], CPU), [limit], beam)
        assert alone.ids == found.ids
        target = torch.tensor([[BEGIN, *found.ids]])
        with torch.no_grad():
            log_probs = model(*pad_sources([source], CPU), target)[0].log_softmax(-1)
        expected = sum(log_probs[t, i].item() for t, i in enumerate([*found.ids, END]))
        assert found.log_prob == pytest.approx(expected, abs=1e-4)
    greedy = greedy_search(model, *pad_sources(sources, CPU), limits)
    assert (greedy == [best for (best,) in together]) == (beam == 1)


@pytest.mark.parametrize("place", ["embedding", "output"])
def test_dropout_works_in_training_only(place: str) -> None:
    model = tiny("none", dropout=0.5)
    source, target = grid(LENGTHS, 1), grid(LENGTHS, 2)
    hooked: list[Tensor] = []
    part = model.encoder if place == "embedding" else model.projection
    part.register_forward_pre_hook(lambda module, inputs: hooked.append(inputs[0]))
    with torch.no_grad():
        for training in (False, True):
            model.train(training)(source, LENGTHS, target)
    used, trained = ((x == 0).float().mean().item() for x in hooked)
    assert used < 0.01
    assert trained == pytest.approx(0.5, abs=0.1)


@every_kind
@pytest.mark.parametrize("tied", ["all", "target", "none"])
def test_a_checkpoint_gives_back_the_model(
    tmp_path: Path, attention: str, layers: int, tied: str
) -> None:
    model = tiny(attention, layers, vocabulary=320, tied_embeddings=tied)
    checkpoint_of(model).save(tmp_path / "c")
    again = Checkpoint.load(tmp_path / "c").build_model()
    assert again.settings == model.settings
    source, target = grid(LENGTHS, 1), grid(LENGTHS, 2)
    with torch.no_grad():
        expected = model(source, LENGTHS, target)
        assert torch.equal(again.eval()(source, LENGTHS, target), expected)


def test_a_kind_that_there_is_not_is_named(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tiny(vocabulary=320))
    checkpoint.config["model"]["kind"] = "convolutional"
    with pytest.raises(CheckpointError, match="the checkpoint's model can't be built"):
        checkpoint.build_model()


@pytest.mark.parametrize("attention", ["none", "additive"])
def test_export_refuses_it_and_leaves_nothing(tmp_path: Path, attention: str) -> None:
    settings = ExportSettings(name="gru")
    with pytest.raises(ExportError) as caught:
        export_bundle(
            origin_of(checkpoint_of(tiny(attention, vocabulary=320))),
            tmp_path / "bundle",
            settings,
            None,
            quiet,
        )
    assert str(caught.value) == (
        "the checkpoint's model is of kind 'recurrent': only Transformers can be exported"
    )
    assert not list(tmp_path.iterdir())


def test_tying_all_needs_equal_vocabularies() -> None:
    with pytest.raises(ValueError, match="joint tokenizer"):
        build_model(RecurrentSettings(), source_vocabulary=10, target_vocabulary=11)
