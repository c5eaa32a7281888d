"""Who runs next: pure Python over ints, with no model, no threads and no clock of its own.

A sentence waits until a lane admits it, then holds its rows until it is released. Sentences belong
to a *flow*, usually their request. Within a priority, flows are served round robin, one sentence at
a time, so that a huge one does not hold up the rest. A higher priority always goes first.

While others wait, a sentence that has no time left to end before its deadline is not begun.
Otherwise an overloaded server would spend all its time on answers that come too late.

The last rows of a lane, its reserve, are for flows that hold no row yet. Without a reserve, a huge
request whose sentences all began together would keep everyone else out until they end, together
again.

A lane can be lost and come back: what it held waits again, before what has not begun.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dragoman_server.engine.core import Failure, Ticket
from dragoman_server.engine.queue_entry import Need, QueueEntry
from dragoman_server.engine.scheduler_settings import SchedulerSettings


class QueueFullError(Exception):
    """The queue has no room for a request."""

    def __init__(self, what: str, waiting: int, wanted: int, room: int) -> None:
        super().__init__(
            f"the queue is full: {waiting} {what} wait, and {wanted} more exceed {room}"
        )
        self.waiting = waiting
        """Sentences, tokens or requests that wait, whichever are too many."""


@dataclass
class Assignment:
    """What a lane is to do before its next step, in this order."""

    leaving: list[tuple[Ticket, Failure]] = field(default_factory=list)
    """Running sentences that must go; their rows are free already."""
    dropped: list[tuple[Ticket, Failure]] = field(default_factory=list)
    """Waiting sentences that will never run."""
    admitted: list[Ticket] = field(default_factory=list)
    """Waiting sentences that begin."""


class Scheduler:
    def __init__(self, settings: SchedulerSettings) -> None:
        self.settings = settings
        self._requests: dict[int, QueueEntry] = {}
        self._flow_order: dict[int, deque[int]] = {}
        """Flows with waiting sentences, by priority; the next one first."""
        self._queues: dict[tuple[int, int], deque[int]] = {}
        """Requests with waiting sentences, by priority and flow."""
        self._held_rows: dict[int, int] = {}
        """Rows that each flow holds."""
        self._lane_rows = [0] * settings.lanes
        """Rows that are held in each lane."""
        self.used_rows = 0
        """Rows that are held, in all lanes."""
        self._open_lanes = set(range(settings.lanes))
        """Lanes that take sentences."""
        self._deadlines: list[tuple[float, int]] = []
        """Heap of deadlines and their requests; some of these may have ended."""
        self._leaving: list[list[tuple[Ticket, Failure]]] = [[] for _ in range(settings.lanes)]
        """Running sentences that each lane is still to be told to let go."""
        self._dropped: list[tuple[Ticket, Failure]] = []
        """Waiting sentences that will never run, until some lane is told."""
        self._waiting_rows = 0
        """Rows that the waiting sentences will hold."""
        self.waiting = 0
        """Sentences that wait."""
        self.waiting_requests = 0
        """Requests of which nothing has begun."""
        self.waiting_tokens = 0
        """Source tokens of the sentences that wait."""
        self.running = 0
        """Sentences that run."""

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
        entry = QueueEntry(flow, priority, deadline, needs)
        self._check_room(entry)
        self._requests[request] = entry
        queue = self._queues.setdefault((priority, flow), deque())
        if not queue:
            self._flow_order.setdefault(priority, deque()).append(flow)
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
        """Whether even the smallest request would be refused. Asked for at every call."""
        queue = self.settings.queue
        return (
            self.waiting + len(self._dropped) >= queue.max_waiting_sentences
            or (self.waiting > 0 and self.waiting_tokens >= queue.max_waiting_tokens)
            or (self.waiting_requests >= queue.max_waiting_requests and not self._begins_at_once)
        )

    @property
    def _share(self) -> int:
        """Rows of a lane from which on it leaves what waits to others, so that all have alike."""
        return -(-(self.used_rows + self._waiting_rows) // len(self._open_lanes))

    @property
    def _begins_at_once(self) -> bool:
        """Whether free rows take all that waits, and more."""
        return self._waiting_rows < len(self._open_lanes) * self.settings.rows - self.used_rows

    def _check_room(self, entry: QueueEntry) -> None:
        """Raise ``QueueFullError`` where a request has no room."""
        queue = self.settings.queue
        # What was dropped counts until it is answered, or it would pile up when lanes stall.
        waiting = self.waiting + len(self._dropped)
        if waiting + entry.waiting > queue.max_waiting_sentences:
            raise QueueFullError("sentences", waiting, entry.waiting, queue.max_waiting_sentences)
        tokens = self.waiting_tokens + entry.waiting_tokens
        if self.waiting and tokens > queue.max_waiting_tokens:
            raise QueueFullError(
                "tokens", self.waiting_tokens, entry.waiting_tokens, queue.max_waiting_tokens
            )
        if self.waiting_requests >= queue.max_waiting_requests and not self._begins_at_once:
            raise QueueFullError("requests", self.waiting_requests, 1, queue.max_waiting_requests)

    def has_work(self, lane: int) -> bool:
        """Whether this lane has anything to do in its next turn, beside its running rows."""
        return bool(self._leaving[lane] or self._dropped) or self._next(lane, tokens=0) is not None

    def lanes_with_work(self) -> list[int]:
        """Return the lanes that have anything to do in their next turn, beside running rows.

        Some of them may find that what waits is not for them.
        """
        share = self._share if self.waiting and self._open_lanes else 0
        rows, leaving = self._lane_rows, self._leaving
        return [lane for lane in self._open_lanes if rows[lane] < share or leaving[lane]]

    def assign(self, lane: int, now: float, pace: float = 0.0) -> Assignment:
        """Decide what this lane does next: who leaves it, and who comes.

        ``pace`` is how long a sentence holds its rows, in seconds for each source token.
        """
        self.expire(now)
        assignment = Assignment(self._leaving[lane], self._dropped)
        self._leaving[lane], self._dropped = [], []
        tokens = 0
        while (ticket := self._next(lane, tokens)) is not None:
            entry = self._requests[ticket.request]
            need = entry.needs[ticket.sentence]
            # One that has begun goes on until it expires: its rows are taken in this very call.
            is_late = now + pace * need.source_tokens > entry.deadline and not entry.running
            if is_late and self.waiting > entry.waiting:
                self.cancel(ticket.request, Failure.EXPIRED)
                continue
            tokens += need.source_tokens
            self._start(ticket, lane)
            assignment.admitted.append(ticket)
        return assignment

    def release(self, tickets: Iterable[Ticket]) -> None:
        """Take back the rows of sentences that have ended by themselves."""
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
            for sentence in entry.waiting_sentences:
                self._dropped.append((Ticket(request, sentence), reason))
            entry.next = len(entry.needs)
            entry.again.clear()
        for sentence, lane in list(entry.running.items()):
            ticket = Ticket(request, sentence)
            self._leaving[lane].append((ticket, reason))
            self._stop(ticket, entry)
        self._requests.pop(request, None)

    def close_lane(self, lane: int) -> list[tuple[Ticket, Failure]]:
        """Give no more work to a lane that is lost. Returns what it was still to be told to let go.

        ``take_back`` lets its other sentences wait again.
        """
        self._open_lanes.discard(lane)
        leaving, self._leaving[lane] = self._leaving[lane], []
        return leaving

    def open_lane(self, lane: int) -> None:
        """Take account of a lane again. It has nothing to do yet."""
        self._open_lanes.add(lane)

    def take_back(self, ticket: Ticket) -> None:
        """Let a running sentence wait again, before those that have not begun."""
        entry = self._requests[ticket.request]
        is_queued = bool(entry.waiting)
        need = entry.needs[ticket.sentence]
        entry.again.append(ticket.sentence)
        self._stop(ticket, entry)
        self.waiting += 1
        self.waiting_tokens += need.source_tokens
        self._waiting_rows += need.rows
        if not is_queued:
            key = (entry.priority, entry.flow)
            if key not in self._queues:
                self._flow_order.setdefault(entry.priority, deque()).appendleft(entry.flow)
            self._queues.setdefault(key, deque()).appendleft(ticket.request)

    @property
    def next_deadline(self) -> float:
        """The moment at which a request may expire next; infinite where none has a deadline."""
        return self._deadlines[0][0] if self._deadlines else math.inf

    def take_dropped(self) -> list[tuple[Ticket, Failure]]:
        """Return the waiting sentences that will never run, where no lane is to answer them."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def expire(self, now: float) -> None:
        """Cancel the requests whose deadline has passed."""
        while self._deadlines and self._deadlines[0][0] <= now:
            self.cancel(heapq.heappop(self._deadlines)[1], Failure.EXPIRED)

    def _prune_deadlines(self) -> None:
        """Forget the deadlines of ended requests, once they are most of the heap."""
        if len(self._deadlines) > 2 * len(self._requests) + 64:
            self._deadlines = [d for d in self._deadlines if d[1] in self._requests]
            heapq.heapify(self._deadlines)

    def _next(self, lane: int, tokens: int) -> Ticket | None:
        """Return the sentence that this lane would admit now, after ``tokens`` of others."""
        settings = self.settings
        if not self.waiting or lane not in self._open_lanes:
            return None
        free = settings.rows - self._lane_rows[lane]
        if not free or self._lane_rows[lane] >= self._share:
            return None
        for priority in sorted(self._flow_order, reverse=True):
            for flow in self._flow_order[priority]:
                request = self._queues[priority, flow][0]
                entry = self._requests[request]
                need = entry.needs[entry.next_sentence]
                if free - need.rows < settings.reserve and self._held_rows.get(flow):
                    continue
                # What does not fit waits for room, or it would be passed over for ever.
                if need.rows > free or (
                    tokens and tokens + need.source_tokens > settings.queue.max_encode_tokens
                ):
                    return None
                return Ticket(request, entry.next_sentence)
        return None

    def _start(self, ticket: Ticket, lane: int) -> None:
        """Give a waiting sentence its rows, and its flow the last place in the order."""
        entry = self._requests[ticket.request]
        need = entry.needs[ticket.sentence]
        if entry.again:
            entry.again.popleft()
        else:
            self.waiting_requests -= not entry.next
            entry.next += 1
        entry.running[ticket.sentence] = lane
        self.waiting -= 1
        self.waiting_tokens -= need.source_tokens
        self.running += 1
        self._waiting_rows -= need.rows
        self._lane_rows[lane] += need.rows
        self.used_rows += need.rows
        self._held_rows[entry.flow] = self._held_rows.get(entry.flow, 0) + need.rows
        order = self._flow_order[entry.priority]
        order.remove(entry.flow)
        order.append(entry.flow)
        if not entry.waiting:
            self._queues[entry.priority, entry.flow].popleft()
            self._forget_if_empty(entry)

    def _stop(self, ticket: Ticket, entry: QueueEntry) -> None:
        """Take a running sentence's rows back."""
        lane = entry.running.pop(ticket.sentence)
        rows = entry.needs[ticket.sentence].rows
        self.running -= 1
        self._lane_rows[lane] -= rows
        self.used_rows -= rows
        self._held_rows[entry.flow] -= rows
        if not self._held_rows[entry.flow]:
            del self._held_rows[entry.flow]
        if not entry.running and not entry.waiting:
            self._requests.pop(ticket.request, None)

    def _forget_if_empty(self, entry: QueueEntry) -> None:
        """Drop the queue of a flow with nothing left to wait for."""
        if not self._queues[entry.priority, entry.flow]:
            del self._queues[entry.priority, entry.flow]
            self._flow_order[entry.priority].remove(entry.flow)
            if not self._flow_order[entry.priority]:
                del self._flow_order[entry.priority]
