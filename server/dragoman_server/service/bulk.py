"""A stream of items, each translated for itself and answered when it is done.

So many items are read ahead as the window allows: one more for each answer that was sent. A client
that does not read its answers, or an engine that is busy, thereby holds the stream back.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.calls import Call
from dragoman_server.service.dispatch import BULK, Dispatcher
from dragoman_server.service.errors import (
    CallError,
    InternalError,
    OverloadedError,
    UnavailableError,
)
from dragoman_server.service.models import ServedModel
from dragoman_server.service.settings import Limits
from dragoman_server.service.translate import Job, Queueing

log = logging.getLogger("dragoman.calls")

Choose = Callable[[pb.TranslateBulkRequest, Call], ServedModel]
"""Finds the model that an item means."""


class Bulk:
    def __init__(
        self, choose: Choose, call: Call, limits: Limits, draining: asyncio.Event, flow: int
    ) -> None:
        self._choose = choose
        self._call = call
        self._limits = limits
        self._draining = draining
        self._queueing = Queueing(BULK, flow)
        self._window = asyncio.Semaphore(limits.bulk_window)
        self._answers: asyncio.Queue[pb.TranslateBulkResponse | CallError | None] = asyncio.Queue()
        self._items: set[asyncio.Task[None]] = set()

    async def run(
        self, requests: AsyncIterator[pb.TranslateBulkRequest]
    ) -> AsyncIterator[pb.TranslateBulkResponse]:
        reading = asyncio.create_task(self._read(requests))
        try:
            while (answer := await self._answers.get()) is not None:
                if isinstance(answer, CallError):
                    raise answer
                yield answer
                self._window.release()  # it was sent
        finally:
            tasks = [reading, *self._items]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, requests: AsyncIterator[pb.TranslateBulkRequest]) -> None:
        end: CallError | None = None
        before = pb.TranslateBulkRequest()
        try:
            async for request in self._until_draining(requests):
                before = _complete(request, before)
                item = asyncio.create_task(self._item(before))
                self._items.add(item)
                item.add_done_callback(self._items.discard)
                self._call.count("items", 1)
                await self._window.acquire()
        except CallError as error:
            end = error
        await asyncio.gather(*self._items)  # what was read is answered, however the stream ends
        self._answers.put_nowait(end)

    async def _until_draining(
        self, requests: AsyncIterator[pb.TranslateBulkRequest]
    ) -> AsyncIterator[pb.TranslateBulkRequest]:
        draining = asyncio.create_task(self._draining.wait())
        try:
            while True:
                coming = asyncio.ensure_future(anext(requests, None))
                await asyncio.wait({coming, draining}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    raise UnavailableError("the server is stopping", 1.0, reason="DRAINING")
                request = await coming
                if request is None:
                    return
                yield request
        finally:
            draining.cancel()

    async def _item(self, request: pb.TranslateBulkRequest) -> None:
        response = pb.TranslateBulkResponse(id=request.id)
        try:
            response.translation.CopyFrom(await self._translation(request))
        except CallError as error:
            response.error.CopyFrom(error.status(self._call.request_id))
        except Exception:
            facts = {"request_id": self._call.request_id}
            log.exception("an item of a bulk stream failed", extra={"facts": facts})
            response.error.CopyFrom(InternalError().status(self._call.request_id))
        self._answers.put_nowait(response)

    async def _translation(self, request: pb.TranslateBulkRequest) -> pb.Translation:
        model = self._choose(request, self._call)
        job = Job(model, request.options, self._call, self._limits, self._queueing)
        (text,) = await job.plan([request.text], ["text"])
        while True:
            await self._wait_for_room(model.dispatcher)
            try:
                (translation,) = await job.translate([text])
            except OverloadedError:
                await model.dispatcher.wait_for_room()
            else:
                return translation

    async def _wait_for_room(self, dispatcher: Dispatcher) -> None:
        """Half of the queue is for those who can't wait."""
        while dispatcher.engine.waiting_requests > self._limits.queue_requests // 2:
            await dispatcher.wait_for_room()


def _complete(
    request: pb.TranslateBulkRequest, before: pb.TranslateBulkRequest
) -> pb.TranslateBulkRequest:
    """An item with what it leaves to the one before."""
    if not (request.source_language or request.target_language or request.model):
        request.source_language = before.source_language
        request.target_language = before.target_language
        request.model = before.model
    if not request.HasField("options") and before.HasField("options"):
        request.options.CopyFrom(before.options)
    return request
