"""A stream of items, each translated for itself and answered when it is done.

As many items are under way as the window allows: one more is read for each answer that was sent. So
a client that does not read its answers, or an engine that is busy, holds the stream back.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.admission import BULK
from dragoman_server.service.calls import Call
from dragoman_server.service.detection import Chosen
from dragoman_server.service.dispatch import Dispatcher
from dragoman_server.service.errors import CallError, InternalError, OverloadedError, draining
from dragoman_server.service.settings import Limits
from dragoman_server.service.translation.engine_calls import Queueing
from dragoman_server.service.translation.texts import TextTranslator

log = logging.getLogger("dragoman.calls")

Choose = Callable[[pb.TranslateBulkRequest, Call], Awaitable[Chosen]]
"""Finds the model that an item of a stream means."""
Rejected = Callable[[str], None]
"""Counts an item that was turned away, by its reason."""


class Bulk:
    """One bulk stream, from its first item to the last answer."""

    def __init__(
        self,
        choose: Choose,
        rejected: Rejected,
        call: Call,
        limits: Limits,
        draining: asyncio.Event,
        flow: int,
    ) -> None:
        self._choose = choose
        self._rejected = rejected
        self._call = call
        self._limits = limits
        self._draining = draining
        self._queueing = Queueing(BULK, flow)
        self._window = asyncio.Semaphore(limits.bulk_window)
        self._answers: asyncio.Queue[pb.TranslateBulkResponse | Exception | None] = asyncio.Queue()
        self._items: set[asyncio.Task[None]] = set()

    async def run(
        self, requests: AsyncIterator[pb.TranslateBulkRequest]
    ) -> AsyncGenerator[pb.TranslateBulkResponse, None]:
        """Yield the answers of all items, each when it is done."""
        reading = asyncio.create_task(self._read(requests))
        try:
            while (answer := await self._answers.get()) is not None:
                if isinstance(answer, Exception):
                    raise answer
                yield answer
                self._window.release()  # it was sent
        finally:
            tasks = [reading, *self._items]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, requests: AsyncIterator[pb.TranslateBulkRequest]) -> None:
        end: Exception | None = None
        try:
            await self._start_items(requests)
        except Exception as error:
            end = error
        await asyncio.gather(*self._items)  # what was read is answered, however the stream ends
        self._answers.put_nowait(end)

    async def _start_items(self, requests: AsyncIterator[pb.TranslateBulkRequest]) -> None:
        before = pb.TranslateBulkRequest()
        stopping = asyncio.ensure_future(self._draining.wait())
        try:
            while True:
                await self._window.acquire()
                request = await self._next(requests, stopping)
                if request is None:
                    return
                before = _complete(request, before)
                item = asyncio.create_task(self._item(request))
                self._items.add(item)
                item.add_done_callback(self._items.discard)
                self._call.count("items", 1)
        finally:
            stopping.cancel()

    async def _next(
        self, requests: AsyncIterator[pb.TranslateBulkRequest], stopping: asyncio.Future[Any]
    ) -> pb.TranslateBulkRequest | None:
        """Wait for the next item: None at the end, an error when the server is to stop."""
        coming = asyncio.ensure_future(anext(requests, None))
        try:
            await asyncio.wait((coming, stopping), return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                raise draining()
            return coming.result()
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _item(self, request: pb.TranslateBulkRequest) -> None:
        response = pb.TranslateBulkResponse(id=request.id)
        try:
            response.translation.CopyFrom(await self._translation(request))
        except CallError as error:
            self._rejected(error.reason)
            response.error.CopyFrom(error.status(self._call.request_id))
        except Exception:
            facts = {"request_id": self._call.request_id}
            log.exception("an item of a bulk stream failed", extra={"facts": facts})
            response.error.CopyFrom(InternalError().status(self._call.request_id))
        self._answers.put_nowait(response)

    async def _translation(self, request: pb.TranslateBulkRequest) -> pb.Translation:
        chosen = await self._choose(request, self._call)
        model = chosen.model
        translator = TextTranslator(
            model, request.options, self._call, self._limits, self._queueing
        )
        plan = await translator.plan([request.text], ["text"])
        while True:
            await self._wait_for_room(model.dispatcher)
            try:
                (translation,) = await translator.translate(plan)
            except OverloadedError:
                await model.dispatcher.wait_for_room()
            else:
                return chosen.mark(translation)

    async def _wait_for_room(self, dispatcher: Dispatcher) -> None:
        """Wait until half of the queue is free: it is for those who can't wait."""
        engine, limits = dispatcher.engine, self._limits
        while (
            engine.waiting_requests > limits.max_waiting_requests // 2
            or engine.waiting_tokens > limits.max_waiting_tokens // 2
        ):
            await dispatcher.wait_for_room()


def _complete(
    request: pb.TranslateBulkRequest, before: pb.TranslateBulkRequest
) -> pb.TranslateBulkRequest:
    """Fill in what an item leaves to the one before, and return it."""
    if not (request.source_language or request.target_language or request.model):
        request.source_language = before.source_language
        request.target_language = before.target_language
        request.model = before.model
    if not request.HasField("options") and before.HasField("options"):
        request.options.CopyFrom(before.options)
    return request
