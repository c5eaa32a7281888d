"""The scheduler under any sequence of calls: what holds after each of them."""

import math
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman_server.engine.core import Failure, Ticket
from dragoman_server.engine.queue_entry import Need
from dragoman_server.engine.scheduler import Assignment, QueueFullError, Scheduler
from dragoman_server.engine.scheduler_settings import QueueSettings, SchedulerSettings
from support.schedulers import FLOWS

ROWS = st.integers(1, 2) | st.integers(1, 9)  # often narrow, so that several run at once
PACES = st.sampled_from([0.0, 0.5, 1.0])  # times whole numbers: exact, so equality is met too


class Machine(RuleBasedStateMachine):
    """Keeps its own plain books, and holds every assignment to the rules."""

    @initialize(
        lanes=st.integers(1, 3),
        rows=st.integers(1, 9),
        reserve=st.integers(0, 3),
        max_encode_tokens=st.integers(1, 12),
    )
    def begin(self, lanes: int, rows: int, reserve: int, max_encode_tokens: int) -> None:
        queue = QueueSettings(max_encode_tokens=max_encode_tokens, max_waiting_sentences=40)
        self.settings = SchedulerSettings(
            lanes=lanes,
            rows=rows,
            reserve=min(reserve, rows - 1),
            queue=queue,
        )
        self.scheduler = Scheduler(self.settings)
        self.now = 0
        self.pace = 0.0
        self.submitted = 0
        self.needs: dict[Ticket, Need] = {}
        self.flow: dict[int, int] = {}
        self.priority: dict[int, int] = {}
        self.deadline: dict[int, float] = {}
        self.waiting: list[Ticket] = []
        """Sentences that wait, in order of arrival."""
        self.running: dict[Ticket, int] = {}
        """Lane of each running sentence."""
        self.leaving: dict[Ticket, tuple[int, Failure]] = {}
        """Sentences that must go: which lane has to be told, and why."""
        self.dropped: dict[Ticket, Failure] = {}
        self.passed: dict[tuple[int, int], set[int]] = {}
        """For each priority and flow that waits and holds nothing: who came before it meanwhile."""
        self.told: Counter[Ticket] = Counter()
        self.most_deadlines = 0

    # What can happen

    @rule(
        needs=st.lists(st.tuples(ROWS, st.integers(1, 15)), min_size=1, max_size=6),
        flow=st.none() | FLOWS,
        priority=st.integers(0, 1),
        patience=st.sampled_from([math.inf, *range(13)]),
    )
    def submit(
        self, needs: list[tuple[int, int]], flow: int | None, priority: int, patience: float
    ) -> None:
        wanted = [Need(min(rows, self.settings.rows), tokens) for rows, tokens in needs]
        request, deadline = self.submitted, self.now + patience
        ahead = len(self.waiting) + len(self.dropped)
        if ahead + len(wanted) > self.settings.queue.max_waiting_sentences:
            with pytest.raises(QueueFullError) as raised:
                self.scheduler.submit(request, wanted, flow=flow, priority=priority)
            assert raised.value.waiting == ahead
            return
        self.scheduler.submit(request, wanted, flow=flow, priority=priority, deadline=deadline)
        self.submitted += 1
        self.flow[request] = request if flow is None else flow
        self.priority[request], self.deadline[request] = priority, deadline
        place = priority, self.flow[request]
        if place not in {(self.priority[w.request], self.flow[w.request]) for w in self.waiting}:
            self.passed.pop(place, None)  # one that had gone comes back behind the others
        for number, need in enumerate(wanted):
            self.needs[Ticket(request, number)] = need
            self.waiting.append(Ticket(request, number))

    @rule(lane=st.integers(0, 2), passing=st.integers(0, 2), pace=PACES)
    def assign(self, lane: int, passing: int, pace: float) -> None:
        lane %= self.settings.lanes
        self.now += passing
        self.pace = pace
        expired = self._let_go_expired()
        has_work = self.scheduler.has_work(lane)
        assigned = self.scheduler.assign(lane, self.now, pace)
        late = [ticket for ticket, _ in self.scheduler._dropped]  # told at the next assignment
        if not expired:  # of which it can't know without a clock
            assert has_work == bool(
                assigned.leaving or assigned.dropped or assigned.admitted or late
            )
        self._check_goodbyes(assigned, lane)
        self._let_go_late(late, assigned.admitted, pace)
        self._check_admitted(assigned.admitted, lane, pace)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        ended = data.draw(st.sets(st.sampled_from(sorted(self.running)), min_size=1))
        self.scheduler.release(ended)
        self.scheduler.release(ended)  # a second time changes nothing
        for ticket in ended:
            del self.running[ticket]

    @precondition(lambda self: self.leaving)
    @rule(data=st.data())
    def release_what_was_cancelled_meanwhile(self, data: st.DataObject) -> None:
        """The lane finished it before it heard of it."""
        self.scheduler.release([data.draw(st.sampled_from(sorted(self.leaving)))])

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        request = data.draw(st.integers(0, self.submitted - 1))
        self.scheduler.cancel(request)
        self._let_go(request, Failure.CANCELLED)

    # What must hold

    @invariant()
    def counters_are_right(self) -> None:
        assert self.scheduler.waiting == len(self.waiting)
        assert self.scheduler.waiting_tokens == sum(
            self.needs[t].source_tokens for t in self.waiting
        )
        assert self.scheduler.waiting_requests == sum(not t.sentence for t in self.waiting)
        assert self.scheduler.running == len(self.running)
        assert self.scheduler._lane_rows == [
            self._used(lane) for lane in range(self.settings.lanes)
        ]
        assert all(0 <= used <= self.settings.rows for used in self.scheduler._lane_rows)

    @invariant()
    def deadlines_are_bounded(self) -> None:
        here = {ticket.request for ticket in [*self.waiting, *self.running]}
        self.most_deadlines = max(self.most_deadlines, len(here))
        assert len(self.scheduler._deadlines) <= 2 * self.most_deadlines + 64

    @invariant()
    def something_can_go_on(self) -> None:
        """Where anything waits, a lane has room for it, or runs what will make room."""
        if self.waiting and not self.running:
            assert any(map(self.scheduler.has_work, range(self.settings.lanes)))

    def teardown(self) -> None:
        """Whatever was asked for comes to an end, and leaves nothing behind."""
        if not hasattr(self, "scheduler"):
            return
        for _ in range(2 * len(self.needs) + 2):
            for lane in range(self.settings.lanes):
                self.assign(lane, 0, self.pace)
            self.scheduler.release(self.running)
            self.running.clear()
            if not (self.waiting or self.leaving or self.dropped):
                break
        assert not self.waiting
        assert all(self.told[ticket] == 1 for ticket in self.needs)
        self.scheduler.assign(0, math.inf)
        assert vars(self.scheduler) == vars(Scheduler(self.settings))

    # The books

    def _held(self, flow: int) -> int:
        return sum(self.needs[t].rows for t in self.running if self.flow[t.request] == flow)

    def _used(self, lane: int) -> int:
        return sum(self.needs[t].rows for t, where in self.running.items() if where == lane)

    def _let_go_expired(self) -> bool:
        """Returns whether there was any."""
        here = {ticket.request for ticket in [*self.waiting, *self.running]}
        expired = [request for request in here if self.deadline[request] <= self.now]
        for request in expired:
            self._let_go(request, Failure.EXPIRED)
        return bool(expired)

    def _let_go(self, request: int, why: Failure) -> None:
        for ticket in [t for t in self.waiting if t.request == request]:
            self.waiting.remove(ticket)
            self.dropped[ticket] = why
        for ticket in [t for t in self.running if t.request == request]:
            self.leaving[ticket] = self.running.pop(ticket), why

    def _let_go_late(self, late: list[Ticket], admitted: list[Ticket], pace: float) -> None:
        """Requests that were not begun because there was no time left to end them."""
        begun = {ticket.request for ticket in [*self.running, *admitted]}
        for request in dict.fromkeys(ticket.request for ticket in late):
            assert request not in begun, "what has begun goes on"
            waiting = [ticket for ticket in self.waiting if ticket.request == request]
            assert [ticket for ticket in late if ticket.request == request] == waiting
            assert self._is_late(waiting[0], pace), "it had time enough"
            self._let_go(request, Failure.EXPIRED)
        assert not late or self.waiting, "the last one kept no one out"

    def _is_late(self, ticket: Ticket, pace: float) -> bool:
        return self.now + pace * self.needs[ticket].source_tokens > self.deadline[ticket.request]

    def _check_goodbyes(self, assigned: Assignment, lane: int) -> None:
        """Those that must go are told, once, on the lane where they are."""
        assert dict(assigned.dropped) == self.dropped
        here = {ticket: why for ticket, (where, why) in self.leaving.items() if where == lane}
        assert dict(assigned.leaving) == here
        for ticket, _ in assigned.dropped:
            self.told[ticket] += 1
        self.dropped = {}
        for ticket in here:
            del self.leaving[ticket]

    def _check_admitted(self, admitted: list[Ticket], lane: int, pace: float) -> None:
        tokens = sum(self.needs[ticket].source_tokens for ticket in admitted)
        assert tokens <= self.settings.queue.max_encode_tokens or len(admitted) == 1
        for ticket in admitted:
            self._check_order(ticket, lane)
            if self._is_late(ticket, pace):
                has_begun = any(other.request == ticket.request for other in self.running)
                is_alone = all(other.request == ticket.request for other in self.waiting)
                assert has_begun or is_alone, "it keeps out those who have time"
            self.waiting.remove(ticket)
            self.running[ticket] = lane
            self.told[ticket] += 1
        assert self._used(lane) <= self.settings.rows

    def _check_order(self, ticket: Ticket, lane: int) -> None:
        """Check that a sentence may come now, and that no one else should come before it."""
        free = self.settings.rows - self._used(lane)
        flow, priority = self.flow[ticket.request], self.priority[ticket.request]
        assert self.needs[ticket].rows <= free
        if free - self.needs[ticket].rows < self.settings.reserve:
            assert not self._held(flow), "the reserve is for those who hold nothing"
        first: dict[tuple[int, int], Ticket] = {}
        for waiting in self.waiting:
            key = self.priority[waiting.request], self.flow[waiting.request]
            first.setdefault(key, waiting)
        assert first[priority, flow] == ticket, "a flow is served in order"
        self.passed = {key: who for key, who in self.passed.items() if key in first}
        for (rank, other), head in first.items():
            if (rank, other) == (priority, flow):
                continue
            if self._held(other):
                self.passed.pop((rank, other), None)
                if rank > priority:  # only what may not touch the reserve is passed over
                    assert free - self.needs[head].rows < self.settings.reserve
            else:
                assert rank <= priority, "a higher priority goes first"
                passed = self.passed.setdefault((rank, other), set())
                if rank == priority:
                    assert flow not in passed, "no one comes twice before one who holds nothing"
                    passed.add(flow)
        self.passed.pop((priority, flow), None)


TestScheduler = Machine.TestCase
TestScheduler.settings = settings(max_examples=100, stateful_step_count=40)
