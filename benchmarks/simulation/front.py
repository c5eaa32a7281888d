"""``dragoman``, with workers that sleep, and an event loop in dilated time.

python -m simulation.front serve BUNDLE...
"""

import asyncio
from typing import Any

from dragoman_cli.main import main
from dragoman_server.engine.workers import link
from simulation.pace import Dilated, Pace


class DilatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose thread computes more slowly than it could."""

    _dilated: Dilated | None = None

    def _run_once(self) -> None:
        if self._dilated is None:  # made here, in the thread whose time it counts
            self._dilated = Dilated(Pace.of_environment().dilation)
        super()._run_once()  # type: ignore[misc]
        self._dilated.catch_up()


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> Any:
        return DilatedLoop()


if __name__ == "__main__":
    link.WORKER_MODULE = "simulation.worker"
    asyncio.set_event_loop_policy(_Policy())
    main()
