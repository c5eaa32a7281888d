"""``dragoman``, with workers that sleep, and an event loop in dilated time.

python -m simulation.front serve BUNDLE...
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc

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


_PATIENCE = ("grpc.server_max_unrequested_time_in_server", 3600)
"""Seconds that gRPC lets a call wait for a busy event loop, in time that is not dilated."""
_make_server = grpc.aio.server


def _patient_server(*given: Any, options: Sequence[tuple[str, Any]] = (), **named: Any) -> Any:
    return _make_server(*given, options=[*options, _PATIENCE], **named)


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> Any:
        return DilatedLoop()


if __name__ == "__main__":
    link.WORKER_MODULE = "simulation.worker"
    asyncio.set_event_loop_policy(_Policy())
    grpc.aio.server = _patient_server
    main()
