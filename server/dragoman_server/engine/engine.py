"""The engine: lanes in threads of their own, fed by one scheduler.

    submit → the scheduler's queue → a lane's turn: leave, admit, encode, step → one report a turn

A sentence's answer does not depend on what else runs, when it came, or which row it got.
"""

import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dragoman_server.bundle import Bundle
from dragoman_server.engine.core import (
    GREEDY,
    Answer,
    Failure,
    Options,
    Report,
    Sentence,
    Ticket,
    Timing,
)
from dragoman_server.engine.lane import Lane
from dragoman_server.engine.rows import Job
from dragoman_server.engine.scheduler import Need, Scheduler, SchedulerSettings, Turn
from dragoman_server.graphs import Graphs, GraphSettings
from dragoman_server.reference import default_limit

log = logging.getLogger(__name__)

Deliver = Callable[[Report], None]


class EngineClosedError(Exception):
    """The engine takes no more requests."""


class SentenceError(ValueError):
    """A sentence or option that this model can't take; ``field`` says which."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    device: str = "cpu"
    rows: int = 64
    """Hypotheses that one request may have decoded at a time, over all replicas.

    Each replica has ``max_beam`` rows beside them, for requests that hold none.
    """
    replicas: int | None = None
    """Lanes that run side by side with the same weights; unset: to suit the cores."""
    threads: int | None = None
    """Of each replica; unset: to suit the cores."""
    max_beam: int = 8
    encode_tokens: int = 512
    """Source tokens read between two steps of a lane."""
    max_waiting: int = 10_000
    """Sentences in the queue."""

    def __post_init__(self) -> None:
        for name in ("rows", "max_beam", "encode_tokens", "max_waiting"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name in ("replicas", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: it must be at least 1")
        if self.max_beam > 32:
            raise ValueError(f"max_beam is {self.max_beam}: it must be at most 32")

    @property
    def resolved(self) -> "Resolved":
        """With what is unset chosen for this machine."""
        cores = available_cores()
        replicas, threads = self.replicas, self.threads
        if self.device != "cpu":
            replicas, threads = replicas or 1, threads or 1
        if replicas is None:
            # A lane of one thread wastes no time on waiting for others, but below some 16 rows its
            # products are too small to be fast.
            replicas = max(1, min(cores // (threads or 1), self.rows // 16))
        if threads is None:
            threads = max(1, cores // replicas)
        return Resolved(replicas, threads, -(-self.rows // replicas) + self.max_beam)


@dataclass(frozen=True)
class Resolved:
    replicas: int
    threads: int
    rows_per_lane: int


def available_cores() -> int:
    """Cores that this process may use: by affinity, and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores or 1, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return cores or 1


@dataclass(frozen=True)
class LaneStatus:
    lane: int
    busy: bool
    """Is in a turn, or has reason for one."""
    since_heartbeat: float
    """Seconds since its last turn began; a busy lane that is far behind is stalled."""


class Engine:
    def __init__(self, bundle: Bundle, settings: EngineSettings, deliver: Deliver) -> None:
        self.manifest = bundle.manifest
        self.settings = settings
        resolved = self.resolved = settings.resolved
        first = Graphs(
            bundle,
            GraphSettings(
                rows=resolved.rows_per_lane, device=settings.device, threads=resolved.threads
            ),
        )
        graphs = [first, *(first.replica() for _ in range(resolved.replicas - 1))]
        self.lanes = [Lane(each, number) for number, each in enumerate(graphs)]
        self._deliver = deliver
        self._scheduler = Scheduler(
            SchedulerSettings(
                lanes=resolved.replicas,
                rows=resolved.rows_per_lane,
                reserve=settings.max_beam,
                encode_tokens=settings.encode_tokens,
                max_waiting=settings.max_waiting,
            )
        )
        self._jobs: dict[Ticket, Job] = {}
        """Of the sentences that wait."""
        self._requests = 0
        self._unanswered = 0
        """Sentences whose answers are not delivered yet."""
        self._changed = threading.Condition()
        self._is_open = True
        self._stopping = False
        self._heartbeats = [time.monotonic()] * resolved.replicas
        self._in_turn = [False] * resolved.replicas
        self._threads = [
            threading.Thread(target=self._run, args=(lane,), name=f"lane-{lane.number}")
            for lane in self.lanes
        ]

    @property
    def buffer_bytes(self) -> int:
        """Memory of all rows, taken at the start."""
        return sum(lane.graphs.buffer_bytes + lane.rows.bytes for lane in self.lanes)

    @property
    def waiting(self) -> int:
        """Sentences in the queue."""
        return self._scheduler.waiting

    @property
    def running(self) -> int:
        """Sentences that hold rows."""
        return self._scheduler.running

    def status(self) -> list[LaneStatus]:
        with self._changed:
            now = time.monotonic()
            return [
                LaneStatus(lane.number, self._is_busy(lane), now - beat)
                for lane, beat in zip(self.lanes, self._heartbeats, strict=True)
            ]

    def start(self) -> None:
        """Warm up at the largest shapes, so that memory does not grow later, and begin."""
        for lane in self.lanes:
            warm_up(lane.graphs, self.settings.encode_tokens, self._most_candidates)
        for thread in self._threads:
            thread.start()

    @property
    def _most_candidates(self) -> int:
        return min(64, self.manifest.dimensions.target_vocabulary)

    def submit(
        self,
        sentences: Sequence[Sentence],
        options: Options = GREEDY,
        *,
        flow: int | None = None,
        priority: int = 0,
        deadline: float = math.inf,
        stream: bool = False,
    ) -> int:
        """Queue a request; its number is in the tickets of its answers.

        ``deadline`` is a moment of ``time.monotonic()``. Sentences of a ``flow`` take turns with
        those of other flows. With ``stream``, tokens are delivered as they come.
        Raises ``SentenceError`` for what the model can't take, ``QueueFullError``, and
        ``EngineClosedError``.
        """
        jobs = [self._job(sentence, options, stream) for sentence in sentences]
        needs = [Need(job.options.beam, len(job.sentence.source) + 1) for job in jobs]
        now = time.monotonic()
        with self._changed:
            if not self._is_open:
                raise EngineClosedError
            request = self._requests
            self._scheduler.submit(request, needs, flow=flow, priority=priority, deadline=deadline)
            self._requests += 1
            self._unanswered += len(jobs)
            for number, job in enumerate(jobs):
                ticket = Ticket(request, number)
                self._jobs[ticket] = replace(job, ticket=ticket, timing=Timing(submitted=now))
            self._changed.notify_all()
        return request

    def cancel(self, request: int) -> None:
        """Its sentences leave at the next step; those that wait never run."""
        with self._changed:
            self._scheduler.cancel(request)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Take no more requests, and wait until those that are here are answered.

        False where they take longer.
        """
        until = time.monotonic() + seconds
        with self._changed:
            self._is_open = False
            return self._changed.wait_for(
                lambda: not self._unanswered, timeout=until - time.monotonic()
            )

    def close(self) -> None:
        """Stop. What is not finished is answered as stopped."""
        with self._changed:
            self._is_open = False
            self._stopping = True
            self._changed.notify_all()
        started = [thread for thread in self._threads if thread.ident is not None]
        if not started:
            self._stop(self.lanes[0], Report(0))
        for thread in started:
            thread.join()

    def _is_busy(self, lane: Lane) -> bool:
        return self._in_turn[lane.number] or self._has_reason(lane)

    def _has_reason(self, lane: Lane) -> bool:
        return lane.running > 0 or self._scheduler.has_work(lane.number)

    def _job(self, sentence: Sentence, options: Options, stream: bool) -> Job:
        """Check a sentence against the model, and decide what depends on it."""
        limits, sizes = self.manifest, self.manifest.dimensions
        end = limits.special_ids.end
        for name, ids, vocabulary in (
            ("source", sentence.source, sizes.source_vocabulary),
            ("prefix", sentence.prefix, sizes.target_vocabulary),
            ("target", sentence.target or (), sizes.target_vocabulary),
            ("suppressed", options.suppressed, sizes.target_vocabulary),
        ):
            if ids and not 0 <= min(ids) <= max(ids) < vocabulary:
                raise SentenceError(name, f"has a token outside the vocabulary of {vocabulary}")
        for name, ids in (
            ("prefix", sentence.prefix),
            ("target", sentence.target or ()),
            ("suppressed", options.suppressed),
        ):
            if end in ids:
                raise SentenceError(name, f"has the end token, {end}")
        most = limits.max_source_tokens - 1
        if len(sentence.source) > most:
            raise SentenceError(
                "source", f"has {len(sentence.source)} tokens: the model takes {most}"
            )
        if options.beam > self.settings.max_beam:
            raise SentenceError(
                "beam", f"is {options.beam}: this engine takes {self.settings.max_beam}"
            )
        if 2 * options.beam > sizes.target_vocabulary:
            raise SentenceError("beam", f"is {options.beam}: too large for the vocabulary")
        limit = self._limit(sentence, options)
        forced = sentence.prefix
        if sentence.target is not None:
            options = Options(length_penalty=options.length_penalty, alignment=options.alignment)
            forced = (*sentence.target, end)
        chosen = options.sampling
        seed = 0
        if chosen is not None:
            seed = secrets.randbits(64) if chosen.seed is None else chosen.seed
        return Job(Ticket(-1, -1), sentence, options, forced, limit, seed, stream)

    def _limit(self, sentence: Sentence, options: Options) -> int:
        most = self.manifest.max_target_tokens
        if sentence.target is not None:
            if len(sentence.target) >= most:
                raise SentenceError(
                    "target", f"has {len(sentence.target)} tokens: the model takes {most - 1}"
                )
            return len(sentence.target) + 1
        limit = options.max_tokens
        if limit is None:
            limit = default_limit(len(sentence.source), most) + len(sentence.prefix)
            limit = max(limit, options.min_tokens + 1)
        limit = min(limit, most)
        for name, tokens in (("prefix", len(sentence.prefix)), ("min_tokens", options.min_tokens)):
            if tokens >= limit:
                raise SentenceError(
                    name, f"is {tokens} tokens: the translation may have {limit}, end included"
                )
        return limit

    def _run(self, lane: Lane) -> None:
        while True:
            with self._changed:
                self._in_turn[lane.number] = False
                self._changed.wait_for(lambda: self._stopping or self._has_reason(lane))
                self._in_turn[lane.number] = True
                now = self._heartbeats[lane.number] = time.monotonic()
                turn = Turn() if self._stopping else self._scheduler.turn(lane.number, now)
                jobs = [self._jobs.pop(ticket) for ticket in turn.admitted]
                dropped = [(self._jobs.pop(t), why) for t, why in turn.dropped]
                stopping = self._stopping
            report = Report(lane.number)
            for job, failure in dropped:
                job.timing.finished = now
                report.answers.append(Answer(job.ticket, failure=failure, timing=job.timing))
            if stopping:
                self._stop(lane, report)
                self._in_turn[lane.number] = False
                return
            self._turn(lane, turn, jobs, report)
            report.turn_seconds = time.monotonic() - now
            self._finish_turn(report)

    def _turn(self, lane: Lane, turn: Turn, jobs: list[Job], report: Report) -> None:
        try:
            lane.leave(turn.leaving, report)
            if jobs:
                lane.admit(jobs, report)
            lane.step(report)
        except Exception:
            log.exception("a step of lane %d failed, with %d sentences", lane.number, lane.running)
            report.faults += 1
            lane.fail_all(Failure.FAULT, report)

    def _finish_turn(self, report: Report) -> None:
        if report.answers:
            with self._changed:
                self._scheduler.release(answer.ticket for answer in report.answers)
                self._changed.notify_all()
        try:
            self._deliver(report)
        except Exception:
            log.exception("a report of lane %d could not be delivered", report.lane)
        if report.answers:
            with self._changed:
                self._unanswered -= len(report.answers)
                if not self._unanswered:
                    self._changed.notify_all()

    def _stop(self, lane: Lane, report: Report) -> None:
        """Answer all that is left; the last lane to come here finds no more in the queue."""
        lane.fail_all(Failure.STOPPED, report)
        with self._changed:
            while self._jobs:
                _, job = self._jobs.popitem()
                self._scheduler.cancel(job.ticket.request, Failure.STOPPED)
                job.timing.finished = time.monotonic()
                report.answers.append(
                    Answer(job.ticket, failure=Failure.STOPPED, timing=job.timing)
                )
        self._finish_turn(report)


def warm_up(graphs: Graphs, encode_tokens: int, candidates: int) -> None:
    """Run each graph at the largest shapes it will meet."""
    rows = graphs.settings.rows
    longest, end = graphs.manifest.max_source_tokens, graphs.manifest.special_ids.end
    for length in (longest, min(longest, max(2, encode_tokens // rows))):
        sentences = max(1, min(rows, encode_tokens // length))
        filled = np.arange(rows) % sentences
        ids = np.full((sentences, length), end, np.int64)
        graphs.encode(ids, np.full(sentences, length), filled, np.arange(rows))
    last = graphs.manifest.max_target_tokens - 1
    graphs.step(
        np.full(rows, end, np.int64),
        np.full(rows, last, np.int64),
        np.full(rows, longest, np.int64),
        candidates=candidates,
    )
    half = rows // 2
    if half:
        graphs.move(range(half), range(half, 2 * half), last + 1, longest)
