"""Who runs next: pure Python over ints, with no model, no threads and no clock of its own.

A sentence waits until a lane admits it, then holds its rows until it is released. Sentences belong
to a *flow*, usually their request; within a priority, flows take turns sentence by sentence, so
that a huge one does not hold up the rest. A higher priority goes first, always.

While others wait, a sentence that has no time left to end before its deadline is not begun: or an
overloaded server would spend all its time on answers that come too late.

The last rows of a lane, its reserve, are for flows that hold no row yet. Without it a huge request
whose sentences all began together would keep everyone else out until they end, together again.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dragoman_server.engine.core import Failure, Ticket


class QueueFullError(Exception):
    """No room for a request."""

    def __init__(self, what: str, waiting: int, wanted: int, room: int) -> None:
        super().__init__(
            f"the queue is full: {waiting} {what} wait, and {wanted} more exceed {room}"
        )
        self.waiting = waiting


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings:
    lanes: int = 1
    rows: int = 64
    """Of each lane."""
    reserve: int = 8
    """Rows of each lane that only a flow without any may take."""
    encode_tokens: int = 512
    """Source tokens that one admission may bring, so that running sentences wait little for it."""
    max_waiting_sentences: int = 10_000
    """Sentences."""
    max_waiting_requests: int = 10_000
    """Requests of which nothing has begun, beside those that free rows will take at once."""
    max_waiting_tokens: int = 1_000_000
    """Of their sources, end tokens included."""

    def __post_init__(self) -> None:
        for name in (
            *("lanes", "rows", "encode_tokens"),
            *("max_waiting_sentences", "max_waiting_requests", "max_waiting_tokens"),
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if not 0 <= self.reserve < self.rows:
            raise ValueError(f"reserve is {self.reserve}: it must be from 0 to {self.rows - 1}")


@dataclass(frozen=True)
class Need:
    """What a sentence takes."""

    rows: int
    tokens: int


_SMALLEST = (Need(rows=1, tokens=1),)


@dataclass
class Turn:
    """What a lane is to do before its next step, in this order."""

    leaving: list[tuple[Ticket, Failure]] = field(default_factory=list)
    """Running sentences that must go; their rows are free already."""
    dropped: list[tuple[Ticket, Failure]] = field(default_factory=list)
    """Waiting sentences that will never run."""
    admitted: list[Ticket] = field(default_factory=list)


@dataclass
class _Request:
    flow: int
    priority: int
    deadline: float
    needs: Sequence[Need]
    next: int = 0
    """The first sentence that still waits."""
    running: dict[int, int] = field(default_factory=dict)
    """Sentences that run, and on which lane."""

    @property
    def waiting(self) -> int:
        return len(self.needs) - self.next

    @property
    def waiting_rows(self) -> int:
        return sum(need.rows for need in self.needs[self.next :])

    @property
    def waiting_tokens(self) -> int:
        return sum(need.tokens for need in self.needs[self.next :])


class Scheduler:
    def __init__(self, settings: SchedulerSettings) -> None:
        self.settings = settings
        self._requests: dict[int, _Request] = {}
        self._turns: dict[int, deque[int]] = {}
        """By priority: flows that have something waiting, the next one first."""
        self._queues: dict[tuple[int, int], deque[int]] = {}
        """By priority and flow: its requests that have something waiting."""
        self._held: dict[int, int] = {}
        """Rows by flow."""
        self._used = [0] * settings.lanes
        self._deadlines: list[tuple[float, int]] = []
        self._leaving: list[list[tuple[Ticket, Failure]]] = [[] for _ in range(settings.lanes)]
        self._dropped: list[tuple[Ticket, Failure]] = []
        self._waiting_rows = 0
        self.waiting = 0
        """Sentences that wait."""
        self.waiting_requests = 0
        """Requests of which nothing has begun."""
        self.waiting_tokens = 0
        self.running = 0
        """Sentences that run."""

    @property
    def used_rows(self) -> int:
        return sum(self._used)

    def submit(
        self,
        request: int,
        needs: Sequence[Need],
        *,
        flow: int | None = None,
        priority: int = 0,
        deadline: float = math.inf,
    ) -> None:
        """Queue a request. A larger number is a higher priority."""
        if request in self._requests:
            raise ValueError(f"request {request} is already here")
        if not needs:
            raise ValueError(f"request {request} has no sentence")
        for need in needs:
            if need.rows > self.settings.rows:
                raise ValueError(f"a sentence needs {need.rows} rows of {self.settings.rows}")
        flow = request if flow is None else flow
        entry = _Request(flow, priority, deadline, needs)
        self._check_room(entry)
        self._requests[request] = entry
        queue = self._queues.setdefault((priority, flow), deque())
        if not queue:
            self._turns.setdefault(priority, deque()).append(flow)
        queue.append(request)
        self.waiting += len(needs)
        self.waiting_requests += 1
        self.waiting_tokens += entry.waiting_tokens
        self._waiting_rows += entry.waiting_rows
        if deadline < math.inf:
            heapq.heappush(self._deadlines, (deadline, request))
            self._prune_deadlines()

    @property
    def is_full(self) -> bool:
        """Whether even the smallest request would be refused."""
        try:
            self._check_room(_Request(flow=0, priority=0, deadline=math.inf, needs=_SMALLEST))
        except QueueFullError:
            return True
        return False

    def _check_room(self, entry: _Request) -> None:
        settings = self.settings
        # What was dropped counts until it is answered, or it would pile up when lanes stall.
        waiting = self.waiting + len(self._dropped)
        if waiting + entry.waiting > settings.max_waiting_sentences:
            raise QueueFullError(
                "sentences", waiting, entry.waiting, settings.max_waiting_sentences
            )
        tokens = self.waiting_tokens + entry.waiting_tokens
        if self.waiting and tokens > settings.max_waiting_tokens:
            raise QueueFullError(
                "tokens", self.waiting_tokens, entry.waiting_tokens, settings.max_waiting_tokens
            )
        begins_at_once = self._waiting_rows < settings.lanes * settings.rows - self.used_rows
        if self.waiting_requests >= settings.max_waiting_requests and not begins_at_once:
            raise QueueFullError(
                "requests", self.waiting_requests, 1, settings.max_waiting_requests
            )

    def has_work(self, lane: int) -> bool:
        """Whether this lane has anything to do in its next turn, beside its running rows."""
        return bool(self._leaving[lane] or self._dropped) or self._has_room(lane)

    def turn(self, lane: int, now: float, pace: float = 0.0) -> Turn:
        """What this lane does next: who leaves it, and who comes.

        ``pace`` is how long a sentence holds its rows, in seconds for each source token.
        """
        self._expire(now)
        turn = Turn(self._leaving[lane], self._dropped)
        self._leaving[lane], self._dropped = [], []
        tokens = 0
        while (ticket := self._next(lane, tokens)) is not None:
            entry = self._requests[ticket.request]
            need = entry.needs[ticket.sentence]
            # One that has begun goes on until it expires: its rows are taken in this very turn.
            is_late = now + pace * need.tokens > entry.deadline and not entry.running
            if is_late and self.waiting > entry.waiting:
                self.cancel(ticket.request, Failure.EXPIRED)
                continue
            tokens += need.tokens
            self._start(ticket, lane)
            turn.admitted.append(ticket)
        return turn

    def release(self, tickets: Iterable[Ticket]) -> None:
        """These sentences have ended by themselves."""
        for ticket in tickets:
            request = self._requests.get(ticket.request)
            # One that was cancelled meanwhile has been released already.
            if request is not None and ticket.sentence in request.running:
                self._stop(ticket, request)

    def cancel(self, request: int, reason: Failure = Failure.CANCELLED) -> None:
        """Let a request go: what waits is dropped, what runs leaves at its lane's next turn."""
        entry = self._requests.get(request)
        if entry is None:
            return
        if entry.waiting:
            queue = self._queues[entry.priority, entry.flow]
            queue.remove(request)
            self._forget_if_empty(entry)
            self.waiting -= entry.waiting
            self.waiting_requests -= not entry.next
            self.waiting_tokens -= entry.waiting_tokens
            self._waiting_rows -= entry.waiting_rows
            for sentence in range(entry.next, len(entry.needs)):
                self._dropped.append((Ticket(request, sentence), reason))
            entry.next = len(entry.needs)
        for sentence, lane in list(entry.running.items()):
            ticket = Ticket(request, sentence)
            self._leaving[lane].append((ticket, reason))
            self._stop(ticket, entry)
        self._requests.pop(request, None)

    def _expire(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            self.cancel(heapq.heappop(self._deadlines)[1], Failure.EXPIRED)

    def _prune_deadlines(self) -> None:
        """Forget those of requests that have ended, once they are the most of them."""
        if len(self._deadlines) > 2 * len(self._requests) + 64:
            self._deadlines = [d for d in self._deadlines if d[1] in self._requests]
            heapq.heapify(self._deadlines)

    def _has_room(self, lane: int) -> bool:
        return self._next(lane, tokens=0) is not None

    def _next(self, lane: int, tokens: int) -> Ticket | None:
        """The sentence that this lane would admit now, after so many tokens of others."""
        settings = self.settings
        free = settings.rows - self._used[lane]
        # Lanes share the work evenly: what one leaves, another is free to take.
        share = -(-(self.used_rows + self._waiting_rows) // settings.lanes)
        if not free or self._used[lane] >= share:
            return None
        for priority in sorted(self._turns, reverse=True):
            for flow in self._turns[priority]:
                request = self._queues[priority, flow][0]
                entry = self._requests[request]
                need = entry.needs[entry.next]
                if free - need.rows < settings.reserve and self._held.get(flow):
                    continue
                # What does not fit waits for room, or it would be passed over for ever.
                if need.rows > free or (tokens and tokens + need.tokens > settings.encode_tokens):
                    return None
                return Ticket(request, entry.next)
        return None

    def _start(self, ticket: Ticket, lane: int) -> None:
        entry = self._requests[ticket.request]
        need = entry.needs[ticket.sentence]
        self.waiting_requests -= not entry.next
        entry.next += 1
        entry.running[ticket.sentence] = lane
        self.waiting -= 1
        self.waiting_tokens -= need.tokens
        self.running += 1
        self._waiting_rows -= need.rows
        self._used[lane] += need.rows
        self._held[entry.flow] = self._held.get(entry.flow, 0) + need.rows
        turns = self._turns[entry.priority]
        turns.remove(entry.flow)
        turns.append(entry.flow)
        if not entry.waiting:
            self._queues[entry.priority, entry.flow].popleft()
            self._forget_if_empty(entry)

    def _stop(self, ticket: Ticket, entry: _Request) -> None:
        lane = entry.running.pop(ticket.sentence)
        rows = entry.needs[ticket.sentence].rows
        self.running -= 1
        self._used[lane] -= rows
        self._held[entry.flow] -= rows
        if not self._held[entry.flow]:
            del self._held[entry.flow]
        if not entry.running and not entry.waiting:
            self._requests.pop(ticket.request, None)

    def _forget_if_empty(self, entry: _Request) -> None:
        """Drop the queue of a flow with nothing left to wait for."""
        if not self._queues[entry.priority, entry.flow]:
            del self._queues[entry.priority, entry.flow]
            self._turns[entry.priority].remove(entry.flow)
            if not self._turns[entry.priority]:
                del self._turns[entry.priority]
