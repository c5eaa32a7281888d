"""Starting workers: what each is told, when the first ones are ready, and when to try again."""

import logging
import selectors
from collections.abc import Sequence

from dragoman_server.bundle.reading import Bundle
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.workers.channel import ChannelClosedError
from dragoman_server.engine.workers.link import LinkState, WorkerLink
from dragoman_server.engine.workers.messages import REFUSED
from dragoman_server.engine.workers.opening import Opened, Opening
from dragoman_server.engine.workers.placement import memory_nodes, places
from dragoman_server.errors import BundleError

_FIRST_DELAY, _MAX_DELAY = 0.25, 30.0
"""Seconds before a worker that keeps dying is started again: doubled each time."""


def openings_for(bundle: Bundle, settings: EngineSettings) -> list[Opening]:
    """Return what each worker of an engine is told when it is started."""
    resolved = settings.resolved
    nodes = memory_nodes() if settings.pin else []
    return [
        Opening(
            lane=lane,
            bundle=bundle.path,
            files={name: stored.sha256 for name, stored in bundle.manifest.files.items()},
            rows=resolved.rows_per_lane,
            device=settings.device,
            threads=resolved.threads,
            spin=resolved.threads > 1,
            max_encode_tokens=settings.max_encode_tokens,
            cpus=cpus,
            log_level=logging.getLogger(__name__).getEffectiveLevel(),
        )
        for lane, cpus in enumerate(places(resolved.lanes, resolved.threads, nodes))
    ]


def start_all(openings: Sequence[Opening]) -> tuple[list[WorkerLink], list[Opened]]:
    """Start workers, and wait until all are ready. Raises ``BundleError`` where one is not."""
    links = [WorkerLink(opening) for opening in openings]
    try:
        return links, _wait_until_ready(links)
    except BaseException:
        for link in links:
            link.kill()
        raise


def _wait_until_ready(links: Sequence[WorkerLink]) -> list[Opened]:
    opened: list[Opened] = []
    with selectors.DefaultSelector() as selector:
        for link in links:
            selector.register(link.fileno(), selectors.EVENT_READ, link)
        while len(opened) < len(links):
            for key, _ in selector.select():
                link = key.data
                try:
                    messages = link.receive()
                except ChannelClosedError:
                    raise BundleError("a worker has died while it loaded its model") from None
                for message in messages:
                    if message[0] == REFUSED:
                        raise BundleError(message[1])
                    link.state = LinkState.READY
                    opened.append(Opened(*message[1:]))
                    selector.unregister(link.fileno())
    return opened


class Delays:
    """How long to wait before a lane's next worker is started: longer while they keep dying."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def next(self, lane: int, was_sound: bool) -> float:
        """Return the seconds to wait now; none after a worker that had done its work well."""
        seconds = 0.0 if was_sound else self._seconds.get(lane, 0.0)
        self._seconds[lane] = min(_MAX_DELAY, 2 * seconds or _FIRST_DELAY)
        return seconds
