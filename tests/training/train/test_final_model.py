"""The final model: the mean of checkpoints, or the best one, whichever validation prefers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman_training.config.recipe import Recipe
from dragoman_training.report.final_choice import Candidate, choose
from dragoman_training.report.records import Observer, ValidationRecord
from dragoman_training.train.run import train


class Notes(Observer):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def noted(self, message: str) -> None:
        self.lines.append(message)


def run(recipe: Recipe, output: Path, rate: float, steps: int, warmup: int = 2) -> list[str]:
    """Train up to a step at a learning rate, and return what was noted."""
    training = replace(
        recipe.training,
        learning_rate=rate,
        schedule="constant",
        max_steps=steps,
        warmup_steps=warmup,
        clip_norm=0.0,
    )
    changed = replace(
        recipe,
        training=training,
        validation=replace(recipe.validation, every=3, sentences=0, metric="loss"),
        checkpoints=replace(recipe.checkpoints, every=3, keep=2, average=2),
    )
    notes = Notes()
    train(changed, output, notes)
    return notes.lines


def config(output: Path) -> dict[str, object]:
    table: dict[str, object] = json.loads((output / "final" / "config.json").read_text())
    return table


def test_the_better_of_the_mean_and_the_best_is_taken(recipe: Recipe, tmp_path: Path) -> None:
    output = tmp_path / "run"
    run(recipe, output, 0.01, 6)
    # At this rate all that was learnt is soon lost, and no mean of what comes is of any use.
    lines = run(recipe, output, 3.0, 12)
    assert lines[-1].startswith("the final model is step 6: loss ")
    assert lines[-1].endswith("of the mean of steps 9, 12")
    best = output / "checkpoints" / "step-00000006" / "model.safetensors"
    assert (output / "final" / "model.safetensors").read_bytes() == best.read_bytes()
    told = config(output)
    assert told["steps"] == [6]
    candidates = told["candidates"]
    assert isinstance(candidates, list)
    assert [each["steps"] for each in candidates] == [[9, 12], [6]]
    assert candidates[1]["loss"] < candidates[0]["loss"]
    assert isinstance(quality := told["quality"], dict)
    assert quality["loss"] == candidates[1]["loss"]
    assert run(recipe, output, 3.0, 12)[-1].startswith("this run is finished")


def test_a_warm_up_longer_than_the_run_is_said_at_its_start(recipe: Recipe, tmp_path: Path) -> None:
    lines = run(recipe, tmp_path / "run", 0.01, 10, warmup=400)
    (warning,) = (line for line in lines if line.startswith("warning: "))
    assert "training.warmup_steps is 400, and training.max_steps only 10" in warning


def candidates(*losses: float | None) -> Sequence[Candidate]:
    steps = ([2, 3], [1])
    qualities = [
        None if loss is None else ValidationRecord(step=3, loss=loss, perplexity=1.0, bleu=-loss)
        for loss in losses
    ]
    return [Candidate(*each) for each in zip(steps[: len(losses)], qualities, strict=True)]


@pytest.mark.parametrize(
    ("losses", "metric", "reason"),
    [
        ((1.0, 2.0), "loss", "the mean of steps 2, 3: loss 1.000 on the validation text, 2.000 of"),
        ((1.0, 1.0), "bleu", "the mean of steps 2, 3: BLEU -1.00 on the validation text, -1.00 of"),
        ((2.0, 1.0), "bleu", "step 1: BLEU -1.00 on the validation text, -2.00 of the mean of"),
        ((None,), "bleu", "the mean of steps 2, 3: there is no validation text to choose by"),
        ((1.0,), "bleu", "the mean of steps 2, 3"),
    ],
)
def test_the_reason_is_said(losses: tuple[float | None, ...], metric: str, reason: str) -> None:
    chosen, said = choose(candidates(*losses), metric)
    assert said.startswith(f"the final model is {reason}")
    assert chosen.name == said.removeprefix("the final model is ").split(":")[0]
