"""What a run computes in and with: the precision it chooses, and its threads."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman_training.train.precision import choose_precision
from support.command import dragoman
from support.models import tiny_model
from support.training_runs import RECIPE, losses, train, weights

CPU = torch.device("cpu")
CRASHES = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"
"""What a processor does to a process that uses an instruction it has only announced."""
SHORT = ("training.max_steps=4", "validation.sentences=0", "validation.metric=loss")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def config(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "final" / "config.json").read_text())
    return found


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_what_a_recipe_names_is_taken(name: str) -> None:
    assert choose_precision(name, tiny_model(), CPU) == (name, "")


def test_where_bfloat16_stops_the_process_it_is_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(CRASHES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    chosen = choose_precision("auto", tiny_model(), CPU)
    assert chosen == ("float32", "cpu does not run bfloat16")


def test_a_run_takes_the_faster_says_so_and_computes_in_it(recipe: Path, tmp_path: Path) -> None:
    code, _, stderr = train(recipe, tmp_path / "auto", "training.precision=auto", *SHORT)
    assert code == 0, stderr
    found = re.search(
        r"^on cpu, 1 thread, (\w+) \((.*) times as fast as (\w+) here\)", stderr, re.MULTILINE
    )
    assert found is not None, stderr
    chosen, factor, other = found.groups()
    assert {chosen, other} == {"float32", "bfloat16"}
    assert float(factor) >= 1
    assert config(tmp_path / "auto")["precision"] == chosen
    assert config(tmp_path / "auto")["recipe"]["training"]["precision"] == "auto"
    code, _, stderr = train(recipe, tmp_path / "named", f"training.precision={chosen}", *SHORT)
    assert f"on cpu, 1 thread, {chosen}\n" in stderr
    assert weights(tmp_path / "named") == weights(tmp_path / "auto")


def test_a_run_may_go_on_in_another_precision(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert train(recipe, run, *SHORT)[0] == 0
    code, _, stderr = train(recipe, run, "training.precision=bfloat16", "training.max_steps=30")
    assert code == 0, stderr
    assert "going on from step 4" in stderr
    assert config(run)["precision"] == "bfloat16"
    assert train(recipe, tmp_path / "whole")[0] == 0
    assert losses(run)[:4] == losses(tmp_path / "whole")[:4]
    assert losses(run)[4:] != losses(tmp_path / "whole")[4:]
    assert losses(run) == pytest.approx(losses(tmp_path / "whole"), rel=0.02)


def test_a_run_has_the_threads_it_is_given_and_may_go_on_with_others(
    recipe: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    sets = [part for setting in SHORT for part in ("--set", setting)]
    code, _, stderr = dragoman("train", recipe, "--output", run, "--threads", "2", *sets)
    assert code == 0, stderr
    assert "on cpu, 2 threads, float32" in stderr
    longer = ("--set", "training.max_steps=6")
    code, _, stderr = dragoman("train", recipe, "--output", run, "--threads", "1", *sets, *longer)
    assert code == 0, stderr
    assert "going on from step 4" in stderr
    assert "on cpu, 1 thread, float32" in stderr


def test_a_run_needs_a_thread(recipe: Path, tmp_path: Path) -> None:
    code, _, stderr = dragoman("train", recipe, "--output", tmp_path / "run", "--threads", "0")
    assert code == 2
    assert "--threads" in stderr
    assert not (tmp_path / "run").exists()
