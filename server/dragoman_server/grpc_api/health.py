"""grpc.health.v1, answered from one variable: it never waits for inference.

The whole server is the service with the empty name; each service has its own name besides. Health
of unknown services is NOT_FOUND for Check, SERVICE_UNKNOWN for Watch, as the protocol has it.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthServicer

SERVING = HealthCheckResponse.SERVING
NOT_SERVING = HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = HealthCheckResponse.SERVICE_UNKNOWN


class Health(HealthServicer):  # type: ignore[misc]
    def __init__(self, services: tuple[str, ...]) -> None:
        self._services = {"", *services}
        self._status = NOT_SERVING
        self._changed = asyncio.Event()

    def set(self, *, serving: bool) -> None:
        """Set whether requests are taken, and tell every watcher."""
        status = SERVING if serving else NOT_SERVING
        if status != self._status:
            self._status = status
            # Each change has an event of its own, so that no watcher can take it from another.
            self._changed.set()
            self._changed = asyncio.Event()

    async def Check(
        self, request: HealthCheckRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> HealthCheckResponse:
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return HealthCheckResponse(status=self._status)

    async def Watch(
        self, request: HealthCheckRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> AsyncIterator[HealthCheckResponse]:
        known = request.service in self._services
        while True:
            changed = self._changed
            yield HealthCheckResponse(status=self._status if known else SERVICE_UNKNOWN)
            await changed.wait()
            if not known:
                await asyncio.Event().wait()  # nothing to tell until the watcher leaves
