"""Steps with nothing to decide between them: one turn, and the same to the last bit."""

from collections.abc import Callable

import pytest

from dragoman_server.bundle.reading import RunnableBundle, read_bundle
from dragoman_server.engine.core import Failure, Options
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.translator import Translator
from dragoman_server.engine.turn import Work
from support import MODEL
from support.engine_bundles import bits, long_bundle, one_lane, running, seeded_bundle, sentences

may_go_on = Engine.may_go_on


def real_bundle() -> RunnableBundle:
    return read_bundle(MODEL)


@pytest.mark.parametrize("bundle", [seeded_bundle, real_bundle])
@pytest.mark.parametrize("rows", [1, 8])
def test_several_steps_in_a_turn_come_to_the_same_as_one_in_each(
    bundle: Callable[[], RunnableBundle], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = sentences(24, seed=3)

    def translated() -> tuple[list[object], int, int]:
        with running(bundle(), one_lane(rows)) as watched:
            answers = watched.translate(wanted)
        turns = [report for report in watched.reports if report.rows]
        steps = sum(1 + len(report.earlier_steps) for report in turns)
        return [bits(answer) for answer in answers], len(turns), steps

    together, turns, steps = translated()
    monkeypatch.setattr(Engine, "may_go_on", lambda engine, work: False)
    alone, most_turns, all_steps = translated()
    assert together == alone
    assert most_turns == all_steps
    assert turns < steps
    if rows == 1:  # whatever comes when, they run one after the other
        assert steps == all_steps


def test_a_turn_ends_where_a_request_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def cancelling(engine: Engine, work: Work) -> bool:
        nonlocal asked
        asked += 1
        if asked == 5:
            engine.cancel(0)
        return may_go_on(engine, work) or asked < 5

    monkeypatch.setattr(Engine, "may_go_on", cancelling)
    with running(long_bundle()) as watched:
        request = watched.engine.submit(sentences(1, seed=1), Options(max_tokens=200))
        (answer,) = watched.answers_of(request)
    assert answer.failure is Failure.CANCELLED
    assert answer.steps == asked == 5


def test_two_translators_of_one_process_take_turns() -> None:
    wanted = sentences(20, seed=5)
    with Translator(seeded_bundle(), one_lane()) as one:
        expected = [bits(answer) for answer in one.translate(wanted)]
    with (
        Translator(seeded_bundle(), one_lane()) as one,
        Translator(real_bundle(), one_lane()) as other,
    ):
        found = []
        for sentence in wanted:
            found += [bits(answer) for answer in one.translate([sentence])]
            other.translate([sentence])
    assert found == expected
