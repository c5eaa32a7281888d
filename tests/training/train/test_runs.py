"""Whole runs through the real command: exact resumption, several processes, bad input."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from support.command import DRAGOMAN, dragoman, finish, start
from support.training_runs import RECIPE, losses, metrics, one_line, train, wait_until, weights


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def test_a_run_killed_again_and_again_ends_with_the_same_weights(
    recipe: Path, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert train(recipe, whole)[0] == 0
    moments: list[Callable[[], bool]] = [
        lambda: (killed / ".data.partial").exists(),
        lambda: len(losses(killed)) >= 1,
        lambda: any(killed.glob("checkpoints/.step-*.partial/model.safetensors")),
        lambda: len(losses(killed)) >= 15,
        lambda: any(killed.glob("checkpoints/step-00000020")),
        lambda: len(losses(killed)) >= 27,
        lambda: (killed / ".final.partial").exists(),
    ]
    kills = 0
    for moment in moments:
        process = start("train", recipe, "--output", killed)
        wait_until(moment, process)
        process.send_signal(signal.SIGKILL)
        kills += finish(process)[0] == -signal.SIGKILL
    assert kills >= 5
    code, _, stderr = train(recipe, killed)
    assert code == 0, stderr
    assert weights(killed) == weights(whole)
    for name in ("model.safetensors", "optimizer.safetensors"):
        last = Path("checkpoints", "step-00000030", name)
        assert (killed / last).read_bytes() == (whole / last).read_bytes()
    assert losses(killed) == losses(whole)
    assert not list(killed.rglob(".*partial"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_leaves(
    recipe: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    run = tmp_path / "run"
    process = start("train", recipe, "--output", run, "--set", "training.max_steps=100000")
    assert wait_until(lambda: len(losses(run)) >= 6, process)
    process.send_signal(number)
    returned, _, stderr = finish(process)
    step = len(losses(run))
    assert returned == code
    assert stderr.splitlines()[-1] == (
        f"dragoman: stopped at step {step}, which is saved: the same command goes on from there"
    )
    assert (run / "checkpoints" / f"step-{step:08d}" / "checkpoint.json").exists()
    assert "Traceback" not in stderr


def test_a_run_that_was_stopped_ends_as_one_that_was_not(recipe: Path, tmp_path: Path) -> None:
    """The checkpoint of a stop is off schedule: it must not be averaged into the final model."""
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    settings = ("training.log_every=7",)
    assert train(recipe, whole, *settings)[0] == 0
    for step in (9, 21):
        process = start("train", recipe, "--output", stopped, "--set", *settings)
        assert wait_until(partial(checkpoint_after, stopped, step), process)
        process.send_signal(signal.SIGTERM)
        assert finish(process)[0] == 143
    assert train(recipe, stopped, *settings)[0] == 0
    assert weights(stopped) == weights(whole)
    assert losses(stopped) == losses(whole)


def checkpoint_after(run: Path, step: int) -> bool:
    return any(int(p.name[5:]) >= step for p in run.glob("checkpoints/step-*"))


def test_two_processes_follow_one(recipe: Path, tmp_path: Path) -> None:
    settings = ("training.max_steps=20", "model.dropout=0.0", "model.activation_dropout=0.0")
    one, two = tmp_path / "one", tmp_path / "two"
    assert train(recipe, one, *settings)[0] == 0
    sets = [part for setting in settings for part in ("--set", setting)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    subprocess.run(
        [*torchrun, "--nproc-per-node", "2", "-m", *DRAGOMAN[2:], "train"]
        + [str(recipe), "--output", str(two), *sets],
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert len(losses(two)) == 20
    assert losses(two) == pytest.approx(losses(one), abs=1e-5)
    final_one, final_two = (
        [r for r in metrics(run) if r["kind"] != "step"][-1] for run in (one, two)
    )
    assert final_two["loss"] == pytest.approx(final_one["loss"], abs=1e-4)


def test_training_that_diverges_stops_with_advice(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    code, _, stderr = train(recipe, run, "training.learning_rate=1e25", "checkpoints.every=1")
    assert code == 1
    last = stderr.splitlines()[-1]
    assert "is no longer a number at step" in last
    assert "lower training.learning_rate" in last
    assert f"The last good checkpoint is {run}/checkpoints/step-0000000" in last
    assert "Traceback" not in stderr
    kept = Path(last.rpartition(" is ")[2])
    assert (kept / "model.safetensors").exists()
    # The advice can be followed.
    lower = ("training.learning_rate=1e-3", "training.clip_norm=1", "training.max_steps=3")
    code, _, stderr = train(recipe, run, *lower)
    assert "holds a run with" not in stderr


def test_a_bad_recipe_writes_nothing(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "new" / "run"
    for setting, message in (
        ("model.widht=64", f"{recipe}: model.widht: unknown key; did you mean width?"),
        ("model.dropout=7", f"{recipe}: model.dropout is 7.0: it must be at least 0 and below 1"),
        (
            "tokenizer.vocabulary=9999",
            "tokenizer.vocabulary is 9999: SentencePiece can't learn it from this text.",
        ),
    ):
        assert one_line(train(recipe, run, setting)).startswith(message)
        assert not (tmp_path / "new").exists()


def test_bad_text_writes_nothing(tmp_path: Path) -> None:
    good = tmp_path / "good.en"
    good.write_text("one\ntwo\nthree\n")
    short = tmp_path / "short.pt"
    short.write_text("um\n")
    latin = tmp_path / "latin.pt"
    latin.write_bytes("um\ntrês\ndois\n".encode("latin-1"))
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[data]\nsource_language = "en"\ntarget_language = "pt"\n')
    for target, message in (
        (tmp_path / "none.pt", f"{tmp_path / 'none.pt'}: no such file"),
        (short, f"{short} has 1 lines but {good} has 3: they must be equal"),
        (latin, f"{latin}: line 2: not UTF-8 (byte 0xea)"),
    ):
        files = (f"data.train_source={good}", f"data.train_target={target}")
        assert one_line(train(recipe, tmp_path / "new" / "run", *files)) == message
        assert not (tmp_path / "new").exists()


def test_what_happens_when_a_run_is_started_again(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    metric = "validation.metric=loss"  # by which the last checkpoint is the best one here
    short, longer = ("training.max_steps=8", metric), ("training.max_steps=12", metric)
    assert train(recipe, run, *short)[0] == 0
    before = weights(run)
    code, _, stderr = train(recipe, run, *short)
    assert code == 0
    assert "this run is finished" in stderr
    assert weights(run) == before
    assert one_line(train(recipe, run, "model.dropout=0.2")) == (
        f"{run} holds a run with model.dropout = 0.1, not 0.2: "
        "choose another --output, or go on with the same setting"
    )
    shutil.copytree(run / "final", tmp_path / "stale")
    assert train(recipe, run, *longer)[0] == 0
    assert len(losses(run)) == 12
    after = weights(run)
    assert after != before
    # As if it had been killed before it wrote the new final model: the old one is not taken for it.
    shutil.rmtree(run / "final")
    (tmp_path / "stale").rename(run / "final")
    assert train(recipe, run, *longer)[0] == 0
    assert weights(run) == after
    assert train(recipe, run, *longer, "checkpoints.average=1")[0] == 0
    last = run / "checkpoints" / "step-00000012" / "model.safetensors"
    assert weights(run) == last.read_bytes()


def test_damaged_checkpoints_are_passed_over(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = ("training.max_steps=12", "checkpoints.keep=5")
    assert train(recipe, run, *settings)[0] == 0
    shutil.rmtree(run / "final")
    (run / "checkpoints" / "step-00000008" / "model.safetensors").unlink()
    code, _, stderr = train(recipe, run, *settings)
    assert code == 0
    assert "passed over" in stderr
    mean, *_ = json.loads((run / "final" / "config.json").read_text())["candidates"]
    assert mean["steps"] == [4, 10, 12]
    for checkpoint in (run / "checkpoints").iterdir():
        (checkpoint / "config.json").write_text("{}")
    shutil.rmtree(run / "final")
    code, _, stderr = train(recipe, run, *settings)
    assert code == 0, stderr
    assert len(losses(run)) == 12
    assert (run / "final" / "model.safetensors").exists()


def test_a_directory_that_is_not_a_run_is_left_alone(recipe: Path, tmp_path: Path) -> None:
    other = tmp_path / "thesis"
    (other / "final").mkdir(parents=True)
    (other / "final" / "thesis.txt").write_text("years of work")
    assert one_line(train(recipe, other)) == (f"{other}: neither empty nor a training run (final)")
    assert (other / "final" / "thesis.txt").read_text() == "years of work"
    file = tmp_path / "file"
    file.write_text("mine")
    assert one_line(train(recipe, file)) == f"{file}: a file, not a directory"


def test_text_may_hold_other_line_separators(
    tmp_path: Path, parallel_text: tuple[Path, Path]
) -> None:
    """They must not cut the log's lines, or the run could not go on."""
    source, target = parallel_text
    source.write_text(source.read_text().replace(" ", "\u2028", 3), encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        RECIPE.partition("[toy]")[0] + "[tokenizer]" + RECIPE.partition("[tokenizer]")[2]
    )
    settings = ["data.source_language=en", "data.target_language=pt", "training.max_steps=4"]
    for split in ("train", "valid"):
        settings += [f"data.{split}_source={source}", f"data.{split}_target={target}"]
    run = tmp_path / "run"
    assert train(recipe, run, *settings)[0] == 0
    settings[2] = "training.max_steps=6"
    assert train(recipe, run, *settings)[0] == 0
    assert len(losses(run)) == 6
    assert dragoman("plot", run)[0] == 0
    more = f"data.train_source=['{source}', '{source}']"
    assert "2 source files but 1 target files" in one_line(train(recipe, run, *settings, more))
    both = f"data.train_target=['{target}', '{target}']"
    message = one_line(train(recipe, run, *settings, more, both))
    assert "was prepared from 4 files, not 6" in message


def test_two_runs_do_not_share_a_directory(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = start("train", recipe, "--output", run, "--set", "training.max_steps=100000")
    assert wait_until(lambda: len(losses(run)) >= 1, first)
    assert one_line(train(recipe, run)) == f"{run}: another process is training there"
    first.terminate()
    assert finish(first)[0] == 143


def test_a_full_disk_leaves_the_last_checkpoint_and_no_litter(recipe: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the moments are twice the weights."""
    run = tmp_path / "run"
    assert train(recipe, run, "training.max_steps=4")[0] == 0
    checkpoint = run / "checkpoints" / "step-00000004"
    size = (checkpoint / "optimizer.safetensors").stat().st_size
    process = start(
        "train",
        recipe,
        "--output",
        run,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1000, size - 1000)),
    )
    code, _, stderr = finish(process)
    assert code == 1
    message = stderr.splitlines()[-1]
    assert "step-00000008: can't be written" in message
    assert message.endswith(f"The last good checkpoint is {checkpoint}")
    assert not list(run.rglob(".*partial"))


@pytest.mark.parametrize(
    ("setting", "tolerance"),
    [
        ("training.precision=bfloat16", 0.02),
        pytest.param("training.compile=true", 1e-4, marks=pytest.mark.slow),  # compiles C++
    ],
)
def test_other_ways_to_compute_follow_plain_float32(
    recipe: Path, tmp_path: Path, setting: str, tolerance: float
) -> None:
    settings = ("training.max_steps=6", "model.dropout=0.0", "model.activation_dropout=0.0")
    assert train(recipe, tmp_path / "plain", *settings)[0] == 0
    code, _, stderr = train(recipe, tmp_path / "other", *settings, setting)
    assert code == 0, stderr
    plain, other = losses(tmp_path / "plain"), losses(tmp_path / "other")
    assert plain != other
    assert other == pytest.approx(plain, rel=tolerance)


def test_float16_is_refused_on_a_cpu(recipe: Path, tmp_path: Path) -> None:
    settings = ("training.precision=float16", "training.device=cpu")
    assert one_line(train(recipe, tmp_path / "run", *settings)) == (
        "training.precision is 'float16', which a CPU can't train in"
    )
    assert not (tmp_path / "run").exists()


def test_cuda_is_not_replaced_by_the_cpu(recipe: Path, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert one_line(train(recipe, tmp_path / "run", "training.device=cuda")).startswith(
        "training.device is 'cuda', but PyTorch finds no CUDA device here"
    )


def test_early_stopping_ends_a_run_that_no_longer_improves(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = ["training.max_steps=1000", "training.learning_rate=1e-9", "validation.every=2"]
    settings += ["validation.patience=3", "validation.metric=bleu", "checkpoints.average_of=best"]
    assert train(recipe, run, *settings)[0] == 0
    assert len(losses(run)) < 100
    validations = [r for r in metrics(run) if r["kind"] == "validation"]
    assert [r["is_best"] for r in validations[-4:]] == [True, False, False, False]


def test_environment_of_torchrun_is_not_set_here() -> None:
    """Otherwise the tests above would wait for processes that nobody starts."""
    assert "WORLD_SIZE" not in os.environ
