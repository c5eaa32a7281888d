"""The loads of one call of ``dragoman bench``: a single one, or a search for the highest rate."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman_cli.bench.find_rate import RateSearch
from dragoman_cli.bench.load import Load, LoadSettings
from dragoman_cli.bench.view import Watch, live_view
from dragoman_client._async_client import AsyncClient

_MET = 0.95
"""Of all calls, those that have to be answered within the target: a failed one is late."""
_LOOK_SECONDS = 5.0
"""Of the first look at what a server can do, before rates are tried."""
_REFRESH = 0.25
"""Seconds between two looks of the live view."""


@dataclass(frozen=True)
class Trial:
    """A rate that was tried."""

    rate: float
    load: Load
    met: bool


@dataclass
class Run:
    connect: Callable[[], AsyncClient]
    texts: Iterator[str]
    asked: dict[str, Any]
    settings: LoadSettings
    where: str
    """The model and its server, for people."""
    target: float | None = None
    """Seconds for 95% of all calls: the highest rate that meets this is looked for."""
    loads: list[Load] = field(default_factory=list)
    """All of them; a search has a bounded number."""
    trials: list[Trial] = field(default_factory=list)
    best: float | None = None
    is_interrupted: bool = False

    async def measure(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # not on Windows: there Ctrl-C ends it without figures
            loop.add_signal_handler(signal.SIGINT, self._interrupt, loop)
        async with self.connect() as client:
            with live_view() as watch:
                if self.target is None:
                    await self._load(client, self.settings, watch)
                else:
                    await self._find(client, self.target, watch)

    @property
    def shown(self) -> Load:
        """The load whose figures are shown: that of the best rate, else the last."""
        best = [trial.load for trial in self.trials if trial.rate == self.best]
        return best[-1] if best else self.loads[-1]

    def title(self, settings: LoadSettings) -> str:
        if settings.rate is not None:
            what = f"open loop, {settings.rate:,.3g} calls a second for {settings.seconds:g} s"
        else:
            length = f"{settings.calls:,} calls" if settings.calls else f"{settings.seconds:g} s"
            what = f"closed loop, {settings.concurrency:,} under way, {length}"
        return f"{what} · {self.where}"

    def _interrupt(self, loop: asyncio.AbstractEventLoop) -> None:
        """The second Ctrl-C ends the process in the usual way."""
        loop.remove_signal_handler(signal.SIGINT)
        self.is_interrupted = True
        if self.loads:
            self.loads[-1].stop()

    async def _load(self, client: AsyncClient, settings: LoadSettings, watch: Watch) -> Load:
        load = Load(client, self.texts, self.asked, settings)
        self.loads.append(load)
        if self.is_interrupted:
            load.stop()

        async def show() -> None:
            while True:
                load.statistics.tick(load.now)
                watch(load, self.title(settings))
                await asyncio.sleep(_REFRESH)

        shown = asyncio.create_task(show())
        try:
            await load.run()
        finally:
            shown.cancel()
            await asyncio.gather(shown, return_exceptions=True)
        return load

    async def _find(self, client: AsyncClient, target: float, watch: Watch) -> None:
        settings = self.settings
        seconds = min(settings.seconds, _LOOK_SECONDS)
        look = (await self._load(client, replace(settings, seconds=seconds), watch)).statistics
        search = RateSearch(max(0.1, look.rate(look.in_time) / 2))
        while not self.is_interrupted and (rate := search.next()) is not None:
            load = await self._load(client, replace(settings, rate=rate), watch)
            if self.is_interrupted:
                break
            met = load.statistics.share_within(target) >= _MET
            search.tell(rate, met)
            self.trials.append(Trial(rate, load, met))
        self.best = search.best
