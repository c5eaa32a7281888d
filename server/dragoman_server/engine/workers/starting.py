"""Starting workers: what each is told, when the first ones are ready, and when to try again."""

import logging
import select
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman_server.bundle.reading import Bundle
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.workers.channel import ChannelClosedError
from dragoman_server.engine.workers.link import LinkState, WorkerLink
from dragoman_server.engine.workers.messages import PREPARED, READY, REFUSED, Message
from dragoman_server.engine.workers.opening import Opened, Opening
from dragoman_server.engine.workers.placement import own_nodes, places
from dragoman_server.errors import BundleError
from dragoman_server.runtime.prepacked import default_directory

_FIRST_DELAY, _MAX_DELAY = 0.25, 30.0
"""Seconds before a worker that keeps dying is started again: doubled each time."""


def cache_of(settings: EngineSettings) -> Path | None:
    """Return the directory for weights that workers share; None where each has its own."""
    if not settings.share_weights or settings.device != "cpu":
        return None
    return settings.cache_dir or default_directory()


def openings_for(bundle: Bundle, settings: EngineSettings) -> list[Opening]:
    """Return what each worker of an engine is told when it is started."""
    resolved = settings.resolved
    nodes = own_nodes() if settings.pin else []
    return [
        Opening(
            lane=lane,
            bundle=bundle.path,
            files={name: stored.sha256 for name, stored in bundle.manifest.files.items()},
            rows=resolved.rows_per_lane,
            device=settings.device,
            threads=resolved.threads,
            spin=resolved.threads > 1,
            touch_memory=settings.reserve_memory,
            max_encode_tokens=settings.max_encode_tokens,
            cpus=cpus,
            log_level=logging.getLogger(__name__).getEffectiveLevel(),
        )
        for lane, cpus in enumerate(places(resolved.lanes, resolved.threads, nodes))
    ]


@dataclass(frozen=True)
class Started:
    """Workers that are ready."""

    links: list[WorkerLink]
    opened: list[Opened]
    """What each worker found when it loaded its bundle."""
    openings: list[Opening]
    """What a successor of each is to be told."""


def start_all(openings: Sequence[Opening], cache: Path | None) -> Started:
    """Start workers, and wait until all are ready. Raises ``BundleError`` where one is not.

    ``cache`` is a directory for weights that they share. The first worker sees to it that these are
    there, before the others load theirs.
    """
    waiting = [_Waiting(WorkerLink(opening.lane)) for opening in openings]
    links = [each.link for each in waiting]
    try:
        final = list(openings)
        unopened = list(links)
        if cache is not None:
            unopened.pop(0).open(replace(openings[0], prepares_in=cache))
            (prepacked,) = waiting[0].for_message(PREPARED)
            final = [replace(each, prepacked=prepacked and Path(prepacked)) for each in openings]
        for link in unopened:
            link.open(final[link.lane])
        opened = [Opened(*each.for_message(READY)) for each in waiting]
    except BaseException as error:
        for link in links:
            link.kill()
        if isinstance(error, ChannelClosedError):
            raise BundleError("a worker has died while it loaded its model") from None
        raise
    for link in links:
        link.state = LinkState.READY
    return Started(links, opened, final)


class _Waiting:
    """Waits for messages of a worker, one at a time."""

    def __init__(self, link: WorkerLink) -> None:
        self.link = link
        self._messages: list[Message] = []

    def for_message(self, kind: int) -> tuple[Any, ...]:
        """Wait for a message of this kind, and return what it says. Raises ``BundleError``."""
        while not self._messages:
            select.select([self.link], [], [])
            self._messages = self.link.receive()
        found, *values = self._messages.pop(0)
        if found == REFUSED:
            raise BundleError(values[0])
        assert found == kind
        return tuple(values)


class Delays:
    """How long to wait before a lane's next worker is started: longer while they keep dying."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def next(self, lane: int, was_sound: bool) -> float:
        """Return the seconds to wait now; none after a worker that had done its work well."""
        seconds = 0.0 if was_sound else self._seconds.get(lane, 0.0)
        self._seconds[lane] = min(_MAX_DELAY, 2 * seconds or _FIRST_DELAY)
        return seconds
