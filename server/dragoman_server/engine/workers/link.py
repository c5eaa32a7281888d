"""The front's end of one worker: its process, its channel, and what the front knows of it."""

import logging
import socket
import subprocess
import sys
import time
from enum import Enum, auto

from dragoman_server.engine.core import Failure, Ticket
from dragoman_server.engine.jobs import Job
from dragoman_server.engine.workers.channel import PostingChannel
from dragoman_server.engine.workers.messages import LOG, Message, pack_work
from dragoman_server.engine.workers.opening import Opening

WORKER_MODULE = "dragoman_server.engine.workers.worker"
"""The module that a worker's process runs. A benchmark has its own, whose graphs only sleep."""
_END_SECONDS = 2.0
"""Seconds that a process that was told to end is waited for before it is killed."""


class LinkState(Enum):
    """Where a worker is in its life."""

    OPENING = auto()
    """It loads its bundle."""
    READY = auto()
    """It takes sentences."""
    LOST = auto()
    """It is gone."""


class WorkerLink:
    """A worker that was started, until it is lost. Its successor has a link of its own."""

    def __init__(self, lane: int) -> None:
        self.lane = lane
        self.state = LinkState.OPENING
        self.jobs: dict[Ticket, Job] = {}
        """Jobs of the sentences that the worker has."""
        self.leaving: dict[Ticket, Failure] = {}
        """Sentences that the worker was told to let go, and has not answered yet."""
        self.started_at = self.heard_at = time.monotonic()
        """When the worker was started, and when it last said something."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", WORKER_MODULE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._channel = PostingChannel(ours)

    @classmethod
    def opened(cls, opening: Opening) -> "WorkerLink":
        """Start a worker, and tell it what to load."""
        link = cls(opening.lane)
        link.open(opening)
        return link

    def open(self, opening: Opening) -> None:
        """Tell the worker what to load. Raises ``ChannelClosedError``."""
        self._channel.send(opening.packed)

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._process.pid

    @property
    def is_busy(self) -> bool:
        """Whether the worker has something to do, so that it is to be heard of."""
        return self.state is LinkState.OPENING or bool(self.jobs)

    @property
    def has_unsent(self) -> bool:
        """Whether something has to be flushed once there is room."""
        return self._channel.has_unsent

    def fileno(self) -> int:
        """The descriptor to wait at."""
        return self._channel.fileno()

    def flush(self) -> None:
        """Send what there is room for. Raises ``ChannelClosedError``."""
        self._channel.flush()

    def send_work(self, leaving: list[tuple[Ticket, Failure]], admitted: list[Job]) -> None:
        """Tell the worker who leaves and who begins. Raises ``ChannelClosedError``."""
        if not self.jobs:
            self.heard_at = time.monotonic()  # until now there was nothing to be heard of
        for job in admitted:
            self.jobs[job.ticket] = job
        # One that was answered meanwhile is not told to leave.
        leaving = [(ticket, why) for ticket, why in leaving if ticket in self.jobs]
        self.leaving.update(leaving)
        if leaving or admitted:
            self._channel.send(pack_work(leaving, admitted))

    def receive(self) -> list[Message]:
        """Return what the worker said. Raises ``ChannelClosedError``. Log records are written."""
        messages: list[Message] = []
        for message in self._channel.receive(wait=False):
            if message[0] == LOG:
                _, level, name, text, trace = message
                facts = {"worker": self.lane, **({"trace": trace} if trace else {})}
                logging.getLogger(name).log(level, "%s", text, extra={"facts": facts})
            else:
                messages.append(message)
        self.heard_at = time.monotonic()
        return messages

    def end(self) -> int:
        """End the process, and return its exit code. Takes a moment."""
        self.state = LinkState.LOST
        self._channel.close()  # it ends by itself when it notices
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """End the process whatever it does, and return its exit code."""
        self.state = LinkState.LOST
        self._channel.close()
        self._process.kill()
        return self._process.wait()
