"""Load on a server through the SDK: calls at settled moments, or always the same number under way.

A latency counts from the moment at which its call was to be sent, not from when this process came
round to it: a client that waits for a slow server before it sends the next call would leave out
just the calls that had to wait longest (coordinated omission).
"""

import asyncio
import random
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dragoman_cli.bench.schedule import poisson_arrivals
from dragoman_cli.bench.statistics import Outcome, Statistics
from dragoman_client._async_client import AsyncClient
from dragoman_client._errors import CallError, ConfigurationError
from dragoman_client._results import Translation

_NAP_SECONDS = 0.05
"""Most seconds that a wait goes on without a look at what happened meanwhile."""


@dataclass(frozen=True, kw_only=True)
class LoadSettings:
    """How calls are sent, and for how long."""

    rate: float | None = None
    """Calls sent a second in an open loop; None for a closed loop."""
    concurrency: int = 8
    """Calls that are always under way in a closed loop."""
    seconds: float = 10.0
    """Seconds for which calls are sent and counted."""
    calls: int | None = None
    """Calls to send in a closed loop, in place of ``seconds``."""
    warm_up: float = 1.0
    """Seconds of calls before those that count."""
    stream_share: float = 0.1
    """Share of the calls that are streamed, from 0 to 1: only they show the first token."""
    max_under_way: int = 2048
    """Most calls under way in an open loop; beyond, calls are sent late."""
    seed: int = 1
    """Number that settles the moments, and which calls are streamed."""

    def __post_init__(self) -> None:
        for name in ("concurrency", "calls", "max_under_way"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} is {value}: it must be at least 1")
        for name in ("rate", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ConfigurationError(f"{name} is {value}: it must be above 0")
        if not 0 <= self.warm_up < float("inf"):
            raise ConfigurationError(f"warm_up is {self.warm_up}: it must be at least 0")
        if not 0 <= self.stream_share <= 1:
            raise ConfigurationError(f"stream_share is {self.stream_share}: it must be 0 to 1")
        if self.calls is not None and self.rate is not None:
            raise ConfigurationError("calls and rate are both given: a rate goes with seconds")

    @property
    def end(self) -> float:
        """Seconds from the beginning until nothing more is sent."""
        return self.warm_up + self.seconds


class Load:
    """One load, to be run once. ``stop`` ends it early; what was measured until then stands."""

    def __init__(
        self,
        client: AsyncClient,
        texts: Iterator[str],
        asked: dict[str, Any],
        settings: LoadSettings,
    ) -> None:
        self.statistics = Statistics(settings.warm_up if settings.calls is None else 0.0)
        self.abandoned = 0
        """Calls that were under way when the load was stopped."""
        self.last_error: CallError | None = None
        self._client = client
        self._texts = texts
        self._asked = asked
        self.settings = settings
        self._draws = random.Random(settings.seed + 1)  # noqa: S311 - calls, not secrets
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._is_stopped = False
        self._failure: BaseException | None = None
        self._began = 0.0

    @property
    def now(self) -> float:
        """Seconds since the load began."""
        return time.monotonic() - self._began

    @property
    def under_way(self) -> int:
        return len(self._tasks)

    def stop(self) -> None:
        self._is_stopped = True
        self._changed.set()

    async def run(self) -> Statistics:
        settings, statistics = self.settings, self.statistics
        self._began = time.monotonic()
        if settings.calls is None:
            statistics.stopped = settings.end
        try:
            await (self._closed() if settings.rate is None else self._open(settings.rate))
            statistics.stop(min(statistics.stopped, self.now))
            while self._tasks and not self._is_over:
                await self._wait(_NAP_SECONDS)
        finally:
            self.abandoned = len(self._tasks)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure
        return statistics

    @property
    def _is_over(self) -> bool:
        return self._is_stopped or self._failure is not None

    async def _open(self, rate: float) -> None:
        """Send each call when its time comes, or as soon as possible after that."""
        settings = self.settings
        arrivals = poisson_arrivals(rate, settings.end, settings.seed)
        for intended in arrivals:
            while (early := intended - self.now) > 0 and not self._is_over:
                await self._wait(early)
            while (
                len(self._tasks) >= settings.max_under_way
                and self.now < settings.end
                and not self._is_over
            ):
                await self._wait(_NAP_SECONDS)
            if self._is_over:
                return
            if self.now >= settings.end:
                self.statistics.leave_unsent(intended)
                break
            self._begin(self._call(intended))
            if early <= 0:  # late already: those under way must have their turn too
                await asyncio.sleep(0)
        for intended in arrivals:
            self.statistics.leave_unsent(intended)

    async def _closed(self) -> None:
        """Let each of a number of people send their next call when the last one is answered."""
        settings = self.settings
        left = settings.calls
        count = settings.concurrency if left is None else min(settings.concurrency, left)

        async def person() -> None:
            nonlocal left
            while not self._is_over and (left if left is not None else self.now < settings.end):
                if left is not None:
                    left -= 1
                await self._call(self.now)

        for _ in range(count):
            self._begin(person())
        while self._tasks and not self._is_over and (left is not None or self.now < settings.end):
            await self._wait(_NAP_SECONDS)

    async def _wait(self, seconds: float) -> None:
        """Wait until something changed, at most so many seconds."""
        self._changed.clear()
        if self._is_over:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._changed.set()

    async def _call(self, intended: float) -> None:
        text = next(self._texts)
        is_streamed = self._draws.random() < self.settings.stream_share
        sent = self.now
        try:
            if is_streamed:
                translation, first_token = await self._stream(text)
            else:
                translation = await self._client.translate(text, **self._asked)
                first_token = None
        except CallError as error:
            self.last_error = error
            kind = (error.code.name, error.reason)
            self.statistics.add(Outcome(intended, sent, self.now, error=kind))
            return
        self.statistics.add(
            Outcome(
                intended,
                sent,
                self.now,
                first_token,
                max(1, len(translation.segments)),
                translation.source_tokens,
                translation.target_tokens,
            )
        )

    async def _stream(self, text: str) -> tuple[Translation, float | None]:
        first: float | None = None
        whole: list[Translation] = []
        async for _ in self._client.stream(text, ended=whole.append, **self._asked):
            if first is None:
                first = self.now
        return whole[0], first
