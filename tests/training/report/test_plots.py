"""Pictures of a run."""

import os
from pathlib import Path

from dragoman_training.report.plots import draw_curves, save_figure
from dragoman_training.report.records import StepRecord, ValidationRecord
from support.legends import assert_legends_hide_nothing


def step(number: int) -> StepRecord:
    return StepRecord(
        step=number,
        epoch=0,
        loss=1.0,
        perplexity=100 / number,
        learning_rate=0.1,
        gradient_norm=1.0,
        tokens_per_second=1000.0,
    )


def validation(number: int) -> ValidationRecord:
    """BLEU that falls to where a legend would be, and chrF that rises there."""
    return ValidationRecord(
        step=number, loss=1.0, perplexity=1.0 + number, bleu=100.0 - number, chrf=float(number)
    )


def test_no_legend_hides_a_curve() -> None:
    numbers = range(1, 101, 9)
    figure = draw_curves([step(n) for n in numbers], [validation(n) for n in numbers], "run")
    assert_legends_hide_nothing(figure, legends=2)


def test_pictures_have_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    figure = draw_curves([step(1), step(2)], [], "run")
    before = os.umask(0o027)
    try:
        paths = save_figure(figure, tmp_path / "new" / "curves.png")
    finally:
        os.umask(before)
    assert [path.name for path in paths] == ["curves.png", "curves.svg"]
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o640}
