"""Learning rates."""

import pytest

from dragoman_training.config.recipe import TrainingSettings
from dragoman_training.train.schedule import learning_rate


@pytest.mark.parametrize("step", [1, 100, 3999, 4000, 4001, 100_000])
def test_the_papers_formula(step: int) -> None:
    expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert learning_rate(step, TrainingSettings(), 512) == pytest.approx(expected)


def test_a_given_peak_is_reached_at_the_end_of_the_warm_up() -> None:
    settings = TrainingSettings(learning_rate=0.01, warmup_steps=50)
    rates = [learning_rate(step, settings, 64) for step in range(1, 200)]
    assert max(rates) == rates[49] == pytest.approx(0.01)
    assert rates[0] == pytest.approx(0.01 / 50)


def test_cosine_falls_to_its_final_share() -> None:
    settings = TrainingSettings(
        schedule="cosine", learning_rate=0.01, warmup_steps=10, max_steps=110, final_rate=0.1
    )
    assert learning_rate(10, settings, 64) == pytest.approx(0.01)
    assert learning_rate(60, settings, 64) == pytest.approx(0.0055)
    assert learning_rate(110, settings, 64) == pytest.approx(0.001)
    assert learning_rate(500, settings, 64) == pytest.approx(0.001)
