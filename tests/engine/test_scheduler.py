"""The scheduler's rules, one by one."""

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.engine.core import Failure, Ticket
from dragoman_server.engine.queue_entry import Need
from dragoman_server.engine.scheduler import Assignment, QueueFullError, Scheduler
from dragoman_server.engine.scheduler_settings import SchedulerSettings
from support.schedulers import FLOWS, ones, scheduler_of


def requests_of(tickets: list[Ticket]) -> list[int]:
    return [ticket.request for ticket in tickets]


def test_flows_are_served_round_robin() -> None:
    scheduler = scheduler_of(rows=7)
    scheduler.submit(0, ones(100))
    scheduler.submit(1, ones(2))
    scheduler.submit(2, ones(1), flow=1)
    scheduler.submit(3, ones(9))
    assert requests_of(scheduler.assign(0, 0.0).admitted) == [0, 1, 3, 0, 1, 3, 0]
    scheduler.release([Ticket(0, 0), Ticket(0, 1), Ticket(0, 2)])
    # Request 2 is of the flow of request 1.
    assert requests_of(scheduler.assign(0, 0.0).admitted) == [2, 3, 0]


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_no_flow_is_more_than_one_sentence_ahead(sizes: list[int], rng: random.Random) -> None:
    """While they all have something waiting, whoever ends when."""
    scheduler = scheduler_of(rows=4)
    for request, size in enumerate(sizes):
        scheduler.submit(request, ones(size))
    served: Counter[int] = Counter()
    running: list[Ticket] = []
    while scheduler.waiting:
        for ticket in scheduler.assign(0, 0.0).admitted:
            served[ticket.request] += 1
            running.append(ticket)
            hungry = [served[r] for r, size in enumerate(sizes) if served[r] < size]
            assert served[ticket.request] <= min(hungry, default=served[ticket.request]) + 1
        rng.shuffle(running)
        scheduler.release([running.pop() for _ in range(rng.randint(1, len(running)))])


def test_a_higher_priority_goes_first() -> None:
    scheduler = scheduler_of(rows=3)
    scheduler.submit(0, ones(5))
    scheduler.submit(1, ones(2), priority=1)
    scheduler.submit(2, ones(2), priority=-1)
    assert requests_of(scheduler.assign(0, 0.0).admitted) == [1, 1, 0]


def test_one_admission_brings_no_more_source_tokens_than_allowed() -> None:
    scheduler = scheduler_of(rows=16, max_encode_tokens=10)
    scheduler.submit(0, [Need(1, tokens) for tokens in (4, 6, 1, 30, 9, 2)])
    admissions = [scheduler.assign(0, 0.0).admitted for _ in range(5)]
    numbers = [[ticket.sentence for ticket in admitted] for admitted in admissions]
    assert numbers == [[0, 1], [2], [3], [4], [5]]


def test_the_reserve_is_for_flows_that_hold_nothing() -> None:
    scheduler = scheduler_of(rows=8, reserve=2)
    scheduler.submit(0, ones(100))
    assert len(scheduler.assign(0, 0.0).admitted) == 6
    scheduler.submit(1, ones(3))
    assert requests_of(scheduler.assign(0, 0.0).admitted) == [1]
    scheduler.submit(2, ones(1), priority=-1)
    assert requests_of(scheduler.assign(0, 0.0).admitted) == [2]
    scheduler.submit(3, ones(1))
    assert scheduler.assign(0, 0.0).admitted == []
    scheduler.release([Ticket(0, 0)])
    assert requests_of(scheduler.assign(0, 0.0).admitted) == [3]


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_lanes_share_the_work_evenly(beam: int) -> None:
    scheduler = scheduler_of(lanes=3, rows=24)
    scheduler.submit(0, [Need(beam, 1)] * 9)
    assert [len(scheduler.assign(lane, 0.0).admitted) for lane in (2, 0, 1)] == [3, 3, 3]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=40), st.integers(1, 4))
def test_no_lane_takes_a_whole_sentence_above_its_share(beams: list[int], lanes: int) -> None:
    scheduler = scheduler_of(lanes=lanes, rows=200)
    scheduler.submit(0, [Need(beam, 1) for beam in beams])
    used = [
        sum(beams[ticket.sentence] for ticket in scheduler.assign(lane, 0.0).admitted)
        for lane in range(lanes)
    ]
    assert sum(used) == sum(beams)
    assert max(used) < -(-sum(beams) // lanes) + max(beams)


def test_a_wide_beam_is_not_passed_over_for_ever() -> None:
    """Narrow ones would always fit before it."""
    scheduler = scheduler_of(rows=8, reserve=1)
    for request in range(8):
        scheduler.submit(request, ones(50))
    assert len(scheduler.assign(0, 0.0).admitted) == 8
    scheduler.submit(8, [Need(rows=8, source_tokens=1)])
    others, running = 0, [Ticket(request, 0) for request in range(8)]
    while Ticket(8, 0) not in running:
        scheduler.release([running.pop(0)])
        admitted = scheduler.assign(0, 0.0).admitted
        running += admitted
        others += len(admitted)
    assert others <= 9


@given(st.data())
def test_whatever_beams_are_mixed_all_are_admitted(data: st.DataObject) -> None:
    lanes, rows = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 12))
    scheduler = scheduler_of(lanes=lanes, rows=rows, reserve=data.draw(st.integers(0, rows - 1)))
    needs = st.lists(st.builds(Need, st.integers(1, rows), st.integers(1, 600)), min_size=1)
    for request in range(data.draw(st.integers(1, 5))):
        flow, priority = data.draw(st.none() | FLOWS), data.draw(st.integers(0, 2))
        scheduler.submit(request, data.draw(needs), flow=flow, priority=priority)
    while scheduler.waiting:
        before = scheduler.waiting
        admitted = [t for lane in range(lanes) for t in scheduler.assign(lane, 0.0).admitted]
        assert scheduler.waiting < before
        scheduler.release(admitted)
    assert vars(scheduler) == vars(Scheduler(scheduler.settings))


def test_a_cancelled_request_leaves_where_it_runs_and_is_dropped_where_it_waits() -> None:
    scheduler = scheduler_of(lanes=2, rows=2)
    scheduler.submit(0, ones(6))
    first, second = scheduler.assign(0, 0.0).admitted, scheduler.assign(1, 0.0).admitted
    scheduler.cancel(0)
    assert (scheduler.waiting, scheduler.running, scheduler.used_rows) == (0, 0, 0)
    assigned = scheduler.assign(1, 0.0)
    assert assigned.leaving == [(ticket, Failure.CANCELLED) for ticket in second]
    assert assigned.dropped == [(Ticket(0, number), Failure.CANCELLED) for number in (4, 5)]
    assert scheduler.has_work(0)
    assert scheduler.assign(0, 0.0) == Assignment([(ticket, Failure.CANCELLED) for ticket in first])
    scheduler.cancel(0)
    scheduler.cancel(77)
    assert scheduler.assign(0, 0.0) == Assignment()


def test_rows_of_a_cancelled_sentence_are_free_in_the_turn_it_leaves() -> None:
    scheduler = scheduler_of(rows=1)
    scheduler.submit(0, ones(1))
    scheduler.submit(1, ones(1))
    scheduler.assign(0, 0.0)
    scheduler.cancel(0)
    assigned = scheduler.assign(0, 0.0)
    assert assigned == Assignment([(Ticket(0, 0), Failure.CANCELLED)], [], [Ticket(1, 0)])


def test_a_request_expires_at_its_deadline_and_not_before() -> None:
    scheduler = scheduler_of(rows=1)
    scheduler.submit(0, ones(2), deadline=10.0)
    scheduler.submit(1, ones(1), deadline=math.nextafter(10.0, math.inf))
    assert scheduler.assign(0, math.nextafter(10.0, 0.0)).admitted == [Ticket(0, 0)]
    assigned = scheduler.assign(0, 10.0)
    assert assigned.leaving == [(Ticket(0, 0), Failure.EXPIRED)]
    assert assigned.dropped == [(Ticket(0, 1), Failure.EXPIRED)]
    assert assigned.admitted == [Ticket(1, 0)]


def test_an_expired_request_is_never_admitted() -> None:
    scheduler = scheduler_of(rows=4)
    scheduler.submit(0, ones(2), deadline=5.0)
    assigned = scheduler.assign(0, 5.0)
    assert assigned.admitted == []
    assert requests_of([ticket for ticket, _ in assigned.dropped]) == [0, 0]


def test_what_has_no_time_left_to_end_is_not_begun_while_others_wait() -> None:
    scheduler = scheduler_of(rows=2)
    scheduler.submit(0, [Need(1, 10)], deadline=10.9)
    scheduler.submit(1, [Need(1, 10)], deadline=11.0)
    scheduler.submit(2, [Need(1, 20)], deadline=11.5)
    scheduler.submit(3, [Need(1, 10)], deadline=11.5)
    assigned = scheduler.assign(0, now=10.0, pace=0.1)  # ten tokens in a second
    assert assigned.admitted == [Ticket(1, 0), Ticket(3, 0)]
    expired = scheduler.assign(0, now=10.0, pace=0.1).dropped
    assert expired == [(Ticket(0, 0), Failure.EXPIRED), (Ticket(2, 0), Failure.EXPIRED)]


def test_what_has_begun_goes_on_however_little_time_is_left() -> None:
    """Its rows would be given away before the lane has freed them."""
    scheduler = scheduler_of(rows=3)
    scheduler.submit(0, [Need(1, 5), Need(1, 50)], deadline=11.0)
    scheduler.submit(1, ones(1))
    scheduler.submit(2, ones(1))
    first = scheduler.assign(0, now=10.0, pace=0.1)
    assert first.admitted == [Ticket(0, 0), Ticket(1, 0), Ticket(2, 0)]
    scheduler.submit(3, ones(1))  # so that it does not wait alone
    scheduler.release([Ticket(1, 0)])
    assert scheduler.assign(0, now=10.1, pace=0.1).admitted == [Ticket(0, 1)]
    assert scheduler.used_rows == 3
    after = scheduler.assign(0, now=10.2, pace=0.1)
    assert not after.leaving
    assert not after.dropped


def test_what_waits_alone_is_begun_however_little_time_it_has() -> None:
    scheduler = scheduler_of(rows=2)
    scheduler.submit(0, [Need(1, 10), Need(1, 10)], deadline=10.1)
    assert scheduler.assign(0, now=10.0, pace=0.1).admitted == [Ticket(0, 0), Ticket(0, 1)]


def test_deadlines_of_requests_that_ended_are_forgotten() -> None:
    scheduler = scheduler_of(rows=4)
    for request in range(5000):
        scheduler.submit(request, ones(1), deadline=1e9 + request)
        scheduler.release(scheduler.assign(0, 0.0).admitted)
        assert len(scheduler._deadlines) < 100


def test_a_full_queue_takes_a_request_whole_or_not_at_all() -> None:
    scheduler = scheduler_of(rows=2, max_waiting_sentences=10)
    scheduler.submit(0, ones(8))
    with pytest.raises(QueueFullError, match="8 sentences wait, and 3 more exceed 10") as raised:
        scheduler.submit(1, ones(3), deadline=1.0)
    assert raised.value.waiting == scheduler.waiting == 8
    scheduler.submit(1, ones(2))
    assert scheduler.waiting == 10
    scheduler.assign(0, 2.0)
    scheduler.submit(2, ones(2))


def test_what_was_dropped_takes_room_until_it_is_answered() -> None:
    """Or those who submit and cancel could fill the memory while a lane stalls."""
    scheduler = scheduler_of(rows=2, max_waiting_sentences=10)
    scheduler.submit(0, ones(8))
    scheduler.cancel(0)
    with pytest.raises(QueueFullError, match="8 sentences wait, and 3 more exceed 10"):
        scheduler.submit(1, ones(3))
    scheduler.assign(0, 0.0)
    scheduler.submit(1, ones(10))


def test_so_many_requests_wait_beside_those_that_free_rows_will_take() -> None:
    scheduler = scheduler_of(rows=4, max_waiting_requests=3)
    for request in range(6):  # the fourth finds one row that no one before it will take
        if request < 4:
            scheduler.submit(request, ones(1))
        else:
            with pytest.raises(QueueFullError, match="4 requests wait, and 1 more exceed 3"):
                scheduler.submit(request, ones(1))
    assert len(scheduler.assign(0, 0.0).admitted) == 4
    for request in range(10, 13):
        scheduler.submit(request, ones(2))
    with pytest.raises(QueueFullError, match="3 requests wait, and 1 more exceed 3"):
        scheduler.submit(13, ones(1))
    scheduler.release([Ticket(0, 0)])
    assert scheduler.assign(0, 0.0).admitted == [Ticket(10, 0)]
    scheduler.submit(13, ones(1))  # 10 has begun


def test_so_many_tokens_wait_unless_one_request_has_more() -> None:
    scheduler = scheduler_of(rows=4, max_waiting_tokens=100)
    scheduler.submit(0, [Need(1, 300)])
    with pytest.raises(QueueFullError, match="300 tokens wait, and 1 more exceed 100"):
        scheduler.submit(1, ones(1))
    scheduler.assign(0, 0.0)
    scheduler.submit(1, [Need(1, 60)])
    with pytest.raises(QueueFullError, match="60 tokens wait, and 41 more exceed 100"):
        scheduler.submit(2, [Need(1, 41)])
    scheduler.submit(2, [Need(1, 40)])


def test_requests_that_can_never_run_are_refused() -> None:
    scheduler = scheduler_of(rows=4)
    scheduler.submit(0, ones(1))
    for request, needs, message in (
        (0, ones(1), "request 0 is already here"),
        (1, [], "request 1 has no sentence"),
        (1, [Need(1, 1), Need(5, 1)], "a sentence needs 5 rows of 4"),
    ):
        with pytest.raises(ValueError, match=message):
            scheduler.submit(request, needs)
    assert scheduler.waiting == 1
    assert scheduler.assign(0, 0.0).admitted == [Ticket(0, 0)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lanes": 0}, "lanes is 0: it must be at least 1"),
        ({"rows": 0}, "rows is 0: it must be at least 1"),
        ({"reserve": -1}, "reserve is -1: it must be from 0 to 63"),
        ({"rows": 8, "reserve": 8}, "reserve is 8: it must be from 0 to 7"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SchedulerSettings(**wrong)
