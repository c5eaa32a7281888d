"""A worker: a process with one lane, its sessions, caches and search.

    python -m dragoman_server.engine.workers.worker DESCRIPTOR

The front starts it, with an end of a socket as the descriptor. It takes turns as long as it has
sentences, and never waits for the front between two of them: what the front has sent by then is
taken up, and a turn with news is reported. It ends when the front is gone.
"""

import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.core import Failure, Report, Ticket
from dragoman_server.engine.jobs import Job
from dragoman_server.engine.lane import Lane
from dragoman_server.engine.turn import MAX_SECONDS, Work, take_turn
from dragoman_server.engine.warm_up import warm_up
from dragoman_server.engine.workers.channel import Channel, ChannelClosedError
from dragoman_server.engine.workers.messages import (
    LOG,
    PREPARED,
    READY,
    REFUSED,
    WORK,
    Message,
    pack_reports,
    unpack_work,
)
from dragoman_server.engine.workers.opening import Opened, Opening
from dragoman_server.errors import BundleError
from dragoman_server.runtime.checks.machine import check_machine
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.prepacked import write_entry
from dragoman_server.traces import trace_of

_HELD_SECONDS = 0.1
"""Seconds for which reports without news are held back; to the front they are a heartbeat."""
_TURN_SECONDS = MAX_SECONDS
"""Seconds after which a turn takes no further step."""


class Worker:
    """Drives a lane by what comes over a channel."""

    def __init__(self, channel: Channel, lane: Lane, max_encode_tokens: int) -> None:
        self._channel = channel
        self._lane = lane
        self._max_encode_tokens = max_encode_tokens
        self._leaving: list[tuple[Ticket, Failure]] = []
        self._pending: deque[Job] = deque()
        """Sentences that have rows in the front's books, and begin as soon as the encoder may."""
        self._held: list[Report] = []
        """Reports that have not been sent."""
        self._sent_at = 0.0

    def run(self) -> None:
        """Take turns until the front is gone."""
        while True:
            is_idle = not (self._lane.running or self._pending or self._leaving)
            for message in self._channel.receive(wait=is_idle):
                self._take(message)
            if self._lane.running or self._pending or self._leaving:
                work = self._next_work()
                self._report(take_turn(self._lane, work, partial(self._may_go_on, work)))

    def _take(self, message: Message) -> None:
        assert message[0] == WORK
        leaving, admitted = unpack_work(message)
        self._leaving += leaving
        self._pending += admitted

    def _next_work(self) -> Work:
        """Decide this turn: who leaves, and as many of those who come as one turn may encode."""
        now = time.monotonic()
        work = Work(began=now, until=now + _TURN_SECONDS)
        gone = dict(self._leaving)
        self._leaving = []
        if gone:
            pending = list(self._pending)
            work.dropped.extend((j, gone.pop(j.ticket)) for j in pending if j.ticket in gone)
            dropped = {job.ticket for job, _ in work.dropped}
            self._pending = deque(job for job in pending if job.ticket not in dropped)
            work.leaving.extend(gone.items())
        tokens = 0
        while self._pending:
            tokens += self._pending[0].source_length
            if work.admitted and tokens > self._max_encode_tokens:
                break
            work.admitted.append(self._pending.popleft())
        return work

    def _may_go_on(self, work: Work) -> bool:
        """Whether nothing else is to be done after this work than to step."""
        return time.monotonic() < work.until and not self._pending and not self._channel.has_news

    def _report(self, report: Report) -> None:
        if self._held and self._held[-1].is_step_only:  # to count it by itself costs the front more
            report.add_earlier(self._held.pop())
        self._held.append(report)
        now = time.monotonic()
        if report.has_news or now >= self._sent_at + _HELD_SECONDS:
            self._channel.send(pack_reports(self._held))
            self._held = []
            self._sent_at = now


class _ChannelHandler(logging.Handler):
    """Hands log records to the front, which has the one log of the server."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        trace = list(trace_of(error, says=True))
        with suppress(ChannelClosedError):
            self._channel.send((LOG, record.levelno, record.name, record.getMessage(), trace))


OpenLane = Callable[[Opening, Channel], tuple[Lane, Opened]]
"""Makes a worker's lane, as it is told. Raises ``BundleError``."""


def open_lane(opening: Opening, channel: Channel) -> tuple[Lane, Opened]:
    """Load the bundle, check it here, and warm up. Raises ``BundleError``."""
    bundle = read_bundle(opening.bundle)
    if {name: stored.sha256 for name, stored in bundle.manifest.files.items()} != opening.files:
        raise BundleError(f"{opening.bundle}: it has changed since the server was started")
    prepacked = opening.prepacked
    if opening.prepares_in is not None:
        prepacked = write_entry(bundle, opening.prepares_in)
        channel.send((PREPARED, prepacked and str(prepacked)))
    elif prepacked is not None and not prepacked.is_dir():
        prepacked = None  # somebody has emptied the cache meanwhile
    graphs = Graphs(
        bundle,
        GraphSettings(
            rows=opening.rows,
            device=opening.device,
            threads=opening.threads,
            spin=opening.spin,
            prepacked=prepacked,
            touch_memory=opening.touch_memory,
        ),
    )
    check = check_machine(bundle, graphs)
    lane = Lane(graphs, opening.lane, bundle.shortlist)
    warm_up(lane, opening.max_encode_tokens)
    return lane, Opened(
        check.golden_error, check.alignments_depend, graphs.buffer_bytes + lane.rows.bytes
    )


def _end_with_the_front(descriptor: int) -> None:
    """End this process at once when the other end is gone, even in the middle of a long call."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    poll.poll()
    os._exit(0)


def serve(channel: Channel, make: OpenLane) -> None:
    """Do what a front says over a channel, from its first message on."""
    (message,) = _first_message(channel)
    opening = Opening.unpacked(message)
    if opening.cpus:
        os.sched_setaffinity(0, opening.cpus)
    root = logging.getLogger()
    root.handlers = [_ChannelHandler(channel)]
    root.setLevel(opening.log_level)
    try:
        lane, opened = make(opening, channel)
    except BundleError as error:
        channel.send((REFUSED, str(error)))
        return
    channel.send((READY, *opened.packed))
    Worker(channel, lane, opening.max_encode_tokens).run()


def _first_message(channel: Channel) -> list[Any]:
    while True:
        if messages := list(channel.receive(wait=True)):
            return messages


def main(make: OpenLane = open_lane) -> None:
    """Be a worker, whose lane ``make`` makes."""
    # Ctrl-C goes to all processes of a terminal, and some supervisors send SIGTERM to all; only the
    # front knows what is to be finished. It ends a worker by closing the channel.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    descriptor = int(sys.argv[1])
    channel = Channel(socket.socket(fileno=descriptor))
    threading.Thread(target=_end_with_the_front, args=(descriptor,), daemon=True).start()
    with suppress(ChannelClosedError):
        serve(channel, make)


if __name__ == "__main__":
    main()
