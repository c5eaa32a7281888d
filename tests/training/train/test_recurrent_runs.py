"""Runs of recurrent models through the real commands, and the comparison with attention."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman_training.errors import CorpusError
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.translate.alignment import cross_attention
from support import ROOT
from support.command import dragoman, start
from support.training_runs import losses, metrics, one_line, train, wait_until, weights

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
        assert len(config["candidates"][0]["steps"]) == 2  # averaged
    exact = {
        attention: figures(run, "--beam-size", "3")["exact"] for attention, run in runs.items()
    }
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
        assert float(whole.split(" ± ")[0]) == round(figures(run, "--beam-size", "2")["bleu"], 1)
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
