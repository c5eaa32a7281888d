"""Recurrent models, with and without attention: against PyTorch's GRU, and what must hold of both.

Training, search, evaluation and checkpoints are those of the Transformer, so what is tested here is
that a recurrent model is a model like any other.
"""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dragoman_export.errors import ExportError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.source import origin_of
from dragoman_training.config.recipe import recipe_from_dict
from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import BEGIN, END, TokenizerPair
from dragoman_training.errors import CheckpointError, CorpusError, RecipeError
from dragoman_training.models.attention import record_attention
from dragoman_training.models.build import build_model
from dragoman_training.models.recurrent.layers import AttentiveDecoder, gru_cell
from dragoman_training.models.recurrent.model import RecurrentModel
from dragoman_training.models.settings import RecurrentSettings
from dragoman_training.train.checkpoint import Checkpoint, weights_of
from dragoman_training.translate.alignment import cross_attention
from dragoman_training.translate.search import beam_search, default_limit, greedy_search
from support import ROOT
from support.models import LENGTHS, TARGET_LENGTHS, VOCABULARY, grid, random_sources
from support.tokenizers import TRAINED
from support.training_runs import (
    dragoman,
    losses,
    metrics,
    one_line,
    start,
    train,
    wait_until,
    weights,
)

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


PAIR = TokenizerPair(TRAINED["unigram"], TRAINED["bpe"])


def checkpoint_of(model: RecurrentModel, tokenizers: TokenizerPair = PAIR) -> Checkpoint:
    sizes = {"source_vocabulary": 320, "target_vocabulary": 320}
    return Checkpoint({"model": {**asdict(model.settings), **sizes}}, weights_of(model), tokenizers)


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
            lambda stage, done, total: None,
        )
    assert str(caught.value) == (
        "the checkpoint's model is of kind 'recurrent': only Transformers can be exported"
    )
    assert not list(tmp_path.iterdir())


DATA = {"source_language": "en", "target_language": "de", "train_source": ["a"]}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "gru"}, "model.kind is 'gru': it must be one of transformer, recurrent"),
        ({"kind": 3}, "model.kind is 3: it must be one of transformer, recurrent"),
        (
            {"kind": "recurrent", "heads": 4},
            "model.heads: a setting of kind 'transformer', not of 'recurrent'",
        ),
        ({"layers": 2}, "model.layers: a setting of kind 'recurrent', not of 'transformer'"),
        (
            {"kind": "recurrent", "preset": "tiny"},
            "model.preset: a setting of kind 'transformer', not of 'recurrent'",
        ),
        (
            {"kind": "recurrent", "attention": "dot"},
            "model.attention is 'dot': it must be one of none, additive",
        ),
        ({"kind": "recurrent", "layers": 0}, "model.layers is 0: it must be at least 1"),
        ({"kind": "recurrent", "embeding": 8}, "model.embeding: unknown key; did you mean embed"),
        (
            {"kind": "recurrent", "max_length": 64},
            "data.max_tokens is 128: it must be at most model.max_length, which is 64",
        ),
    ],
    ids=str,
)
def test_a_setting_of_the_wrong_kind_is_named(model: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe_from_dict({"data": DATA, "model": model})
    assert str(caught.value).startswith(message)


def test_a_recipe_has_one_kind_and_survives_being_written(tmp_path: Path) -> None:
    recurrent = recipe_from_dict({"data": DATA, "model": {"kind": "recurrent"}})
    assert recurrent.model == RecurrentSettings()
    assert recipe_from_dict(json.loads(json.dumps(recurrent.to_dict()))) == recurrent
    old = recipe_from_dict({"data": DATA}).to_dict()
    del old["model"]["kind"]
    assert recipe_from_dict(old) == recipe_from_dict({"data": DATA})
    with pytest.raises(RecipeError, match=r"training\.compile is true: .*'recurrent'"):
        recipe_from_dict(
            {"data": DATA, "model": {"kind": "recurrent"}, "training": {"compile": True}}
        )


def test_tying_all_needs_equal_vocabularies() -> None:
    with pytest.raises(ValueError, match="joint tokenizer"):
        build_model(RecurrentSettings(), source_vocabulary=10, target_vocabulary=11)


RECIPE = """
seed = 3

[toy]
max_length = 7
train = 4000
valid = 100
test = 100

[tokenizer]
vocabulary = 301

[model]
kind = "recurrent"
attention = "ATTENTION"
width = 64
embedding = 32
max_length = 32
dropout = 0.0

[data]
max_tokens = 32

[training]
max_steps = 400
batch_tokens = 1024
warmup_steps = 40
learning_rate = 0.01
schedule = "cosine"
clip_norm = 1.0
label_smoothing = 0.0

[validation]
every = 200
sentences = 100

[checkpoints]
every = 100
keep = 2
average = 2
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trained run of each kind."""
    directory = tmp_path_factory.mktemp("recurrent")
    for attention in ("none", "additive"):
        recipe = directory / f"{attention}.toml"
        recipe.write_text(RECIPE.replace("ATTENTION", attention))
        code, _, stderr = train(recipe, directory / attention)
        assert code == 0, stderr
    return {attention: directory / attention for attention in ("none", "additive")}


def figures(run: Path, *options: str) -> dict[str, Any]:
    toy = run / "data" / "toy"
    files = ("--source", toy / "test.source", "--reference", toy / "test.target")
    code, stdout, stderr = dragoman("evaluate", run, *files, "--json", *options)
    assert code == 0, stderr
    found: dict[str, Any] = json.loads(stdout)
    return found


@pytest.mark.slow
def test_both_learn_and_attention_learns_more(runs: dict[str, Path]) -> None:
    for run in runs.values():
        assert losses(run)[-1] < 0.6 * losses(run)[0]
        config = json.loads((run / "final" / "config.json").read_text())
        assert len(config["steps"]) == 2  # averaged
    exact = {attention: figures(run, "--beam", "3")["exact"] for attention, run in runs.items()}
    assert exact["additive"] > 80
    assert exact["additive"] > exact["none"] + 10


@pytest.mark.slow
def test_attention_looks_at_the_letter_that_it_writes(runs: dict[str, Path]) -> None:
    checkpoint = Checkpoint.load(runs["additive"] / "final")
    looked = cross_attention(checkpoint.build_model(), checkpoint.tokenizers, "b a c d")
    assert looked.translation == "d c a b"
    assert looked.weights_TS.shape == (len(looked.target), len(looked.source))
    np.testing.assert_allclose(looked.weights_TS.sum(axis=1), 1.0, rtol=1e-5)
    # The encoder reads in both directions, so a letter may be seen in its neighbours too.
    order = looked.weights_TS[:-1] @ np.arange(len(looked.source))
    assert np.corrcoef(order, np.arange(len(order)))[0, 1] < -0.9
    with pytest.raises(CorpusError, match="--head 2: the model has heads 1 to 1"):
        cross_attention(checkpoint.build_model(), checkpoint.tokenizers, "a b", head=2)


@pytest.mark.slow
def test_the_commands_draw_it_or_say_that_there_is_nothing_to_draw(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    heat_map = tmp_path / "heat.png"
    code, stdout, stderr = dragoman("attention", runs["additive"], "b a c", "-o", heat_map)
    assert code == 0, stderr
    assert stdout.splitlines()[1] == str(heat_map)
    assert heat_map.stat().st_size > 5000
    heat_map.unlink()
    result = dragoman("attention", runs["none"], "b a c", "-o", heat_map)
    assert one_line(result) == (
        "the model has no attention to show: its decoder sees the source as one vector"
    )
    assert not heat_map.exists()
    assert dragoman("plot", runs["none"])[0] == 0


@pytest.mark.slow
def test_the_export_command_refuses_it_in_one_line(runs: dict[str, Path], tmp_path: Path) -> None:
    code, stdout, stderr = dragoman("export", runs["additive"], tmp_path / "bundle")
    assert (code, stdout) == (2, "")
    assert stderr.splitlines()[-1] == (
        "dragoman: the checkpoint's model is of kind 'recurrent': only Transformers can be exported"
    )
    assert "Traceback" not in stderr
    assert not (tmp_path / "bundle").exists()


SHORT = ("training.max_steps=30", "training.log_every=1", "checkpoints.every=4", "toy.train=400")
DROPS = ("model.dropout=0.2", "model.layers=2", "training.accumulate=2")


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["none", "additive"])
def test_a_run_goes_on_exactly(tmp_path: Path, attention: str) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("ATTENTION", attention))
    settings = (*SHORT, *DROPS, "training.warmup_steps=5", "validation.every=15")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    code, _, stderr = train(recipe, whole, *settings)
    assert code == 0, stderr
    sets = [part for setting in settings for part in ("--set", setting)]
    process = start("train", recipe, "--output", killed, *sets)
    assert wait_until(lambda: len(losses(killed)) >= 9, process)
    process.kill()
    process.communicate()
    assert len(losses(killed)) < 30
    assert train(recipe, killed, *settings)[0] == 0
    assert weights(killed) == weights(whole)
    assert losses(killed) == losses(whole)


@pytest.mark.slow  # bfloat16 is slow on most CPUs
@pytest.mark.parametrize("attention", ["none", "additive"])
def test_bfloat16_follows_float32(tmp_path: Path, attention: str) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("ATTENTION", attention))
    settings = ["training.max_steps=6", "training.log_every=1", "toy.train=400", "model.layers=2"]
    settings += ["training.warmup_steps=5"]
    assert train(recipe, tmp_path / "plain", *settings)[0] == 0
    code, _, stderr = train(recipe, tmp_path / "other", *settings, "training.precision=bfloat16")
    assert code == 0, stderr
    plain, other = losses(tmp_path / "plain"), losses(tmp_path / "other")
    assert plain != other
    assert other == pytest.approx(plain, rel=0.02)
    assert len([r for r in metrics(tmp_path / "other") if r["kind"] == "validation"]) == 1


BENCHMARK = ROOT / "benchmarks" / "attention.py"


def compare(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCHMARK, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


@pytest.mark.slow
def test_the_comparison_has_a_table_and_pictures(runs: dict[str, Path], tmp_path: Path) -> None:
    toy = runs["none"] / "data" / "toy"
    files = ("--source", toy / "test.source", "--reference", toy / "test.target")
    options = ("--buckets", "5", "6", "99", "--beam", "2", "--output", tmp_path)
    both = (runs["none"], runs["additive"])
    done = compare(*both, *files, *options, "--sentence", "a b c d")
    assert done.returncode == 0, done.stderr
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert table[0] == ["", "GRU", "GRU with attention"]
    rows = {row[0]: row[1:] for row in table if row}
    assert [name.partition(" (")[0] for name in list(rows)[-3:]] == [
        "BLEU, 1–5 words",
        "BLEU, 6 words",
        "BLEU, 7–99 words",
    ]
    lengths = [len(line.split()) for line in (toy / "test.source").read_text().splitlines()]
    assert f"BLEU, 6 words ({lengths.count(6)} sentences)" in rows
    for (attention, run), whole in zip(runs.items(), rows["BLEU"], strict=True):
        assert float(whole.split(" ± ")[0]) == round(figures(run, "--beam", "2")["bleu"], 1)
        model = Checkpoint.load(run / "final").build_model()
        count = f"{sum(p.numel() for p in model.parameters()):,}"
        assert rows["parameters"][list(runs).index(attention)] == count
    for name in ("lengths.png", "maps.png"):
        assert (tmp_path / name).stat().st_size > 10_000


@pytest.mark.slow
def test_the_comparison_says_what_is_wrong_in_one_line(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("a b\n")
    files = ("--source", text, "--reference", text, "--output", tmp_path / "out")
    for arguments, message in (
        ((tmp_path / "none", *files), f"{tmp_path / 'none'}: neither a checkpoint nor a run"),
        ((runs["none"], *files, "--sentence", "a"), "none of the models has attention to show"),
    ):
        done = compare(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith(message)
        assert done.stderr.count("\n") == 1
