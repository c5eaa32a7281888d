"""How fast an engine is found to be: pure arithmetic over turns and sentences that ended."""

import pytest

from dragoman_server.engine.speed import Speed


def test_a_wait_is_known_after_half_a_second_of_work_and_forgotten_after_ten() -> None:
    speed = Speed()
    assert speed.wait(100, lanes=1) is None
    speed.add_turn(0.0, 40, 0.4)
    assert speed.wait(100, lanes=1) is None
    speed.add_turn(1.0, 60, 0.6)
    assert speed.wait(200, lanes=1) == pytest.approx(2.0)
    assert speed.wait(200, lanes=4) == pytest.approx(0.5)
    speed.add_turn(10.5, 0, 0.9)  # a turn that read nothing; the first is too old
    assert speed.wait(200, lanes=1) == pytest.approx(200 / (60 / 1.5))
    for _ in range(10_000):
        speed.add_turn(11.0, 1, 0.001)
    assert len(speed._turns) <= 4096
    assert speed.tokens_per_second(1) == pytest.approx(1000)


def test_the_pace_follows_the_sentences_and_stays_above_their_mean() -> None:
    speed = Speed()
    assert speed.pace == 0
    speed.add_sentence(10, 1.0)
    assert speed.pace == pytest.approx(1.25 * 0.1)
    for _ in range(200):
        speed.add_sentence(10, 2.0)
    assert speed.pace == pytest.approx(1.25 * 0.2, rel=1e-3)
