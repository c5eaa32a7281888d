"""``AsyncClient.translate_many``: two tasks and the caller around one window, as ``_many``."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import CallError
from dragoman_client._messages import (
    RequestBuilder,
    check_many,
    ended_early,
    is_of_one_item,
    not_text,
    result,
)
from dragoman_client._results import Translation
from dragoman_client._retries import Interruptions, Retries, is_passing
from dragoman_client._statuses import from_rpc_error
from dragoman_client._window import Window

Open = Callable[[AsyncIterator[pb.TranslateBulkRequest]], Any]


class AsyncMany:
    def __init__(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        builder: RequestBuilder,
        window: int,
        retries: Retries,
    ) -> None:
        check_many(texts, window)
        self._texts = texts
        self._builder = builder
        self._interruptions = Interruptions(retries)
        self._window = Window(window)
        self._changed = asyncio.Condition()
        self._is_read = False
        self._problem: BaseException | None = None
        self._stream = 0

    async def results(self, open_stream: Open) -> AsyncIterator[Translation | CallError]:
        feeding = asyncio.create_task(self._feed())
        try:
            while True:
                error: CallError | None = None
                alone, answered = self._window.has_suspects, False
                call = open_stream(self._requests(await self._next_stream(), alone))
                try:
                    async for response in call:
                        number, found = int(response.id), result(response)
                        if isinstance(found, CallError) and is_passing(found):
                            error = found  # sent again with the next stream
                            break
                        answered = True
                        self._answer(number, found)
                        while (ready := self._window.next_result()) is not None:
                            await self._tell()
                            yield ready
                except grpc.RpcError as raised:
                    error = from_rpc_error(raised)
                finally:
                    call.cancel()
                if error is None and self._is_read and self._window.is_empty:
                    break
                if error is not None and is_of_one_item(error) and not (alone and answered):
                    self._window.find_out_whose(error, alone)
                    while (ready := self._window.next_result()) is not None:
                        await self._tell()
                        yield ready
                elif error is not None or not (alone and answered):
                    await self._wait_or_raise(error or ended_early())
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            await self._next_stream()
        if self._problem is not None:
            raise self._problem

    async def _feed(self) -> None:
        try:
            async with aclosing(_each(self._texts)) as texts:
                async for text in texts:
                    self._builder.check_item(text)
                    async with self._changed:
                        await self._changed.wait_for(lambda: self._window.has_room)
                        self._window.add(text)
                        self._changed.notify_all()
        except Exception as error:  # it is the caller's: raised where the results are read
            self._problem = error
        finally:
            self._is_read = True
        await self._tell()

    def _answer(self, number: int, found: Translation | CallError) -> None:
        self._interruptions.answered()
        self._window.answer(number, not_text(self._window.text(number)) or found)

    async def _wait_or_raise(self, error: CallError) -> None:
        delay = self._interruptions.delay(error, time.monotonic())
        if delay is None:
            raise error
        await asyncio.sleep(delay)

    async def _requests(self, stream: int, alone: bool) -> AsyncIterator[pb.TranslateBulkRequest]:
        first = True
        while first or not alone:
            async with self._changed:
                await self._changed.wait_for(
                    lambda: stream != self._stream or self._window.has_unsent or self._is_read
                )
            if stream != self._stream:
                return
            item = self._window.next_unsent()
            if item is None:
                return
            yield self._builder.item(*item, first=first)
            first = False

    async def _next_stream(self) -> int:
        self._stream += 1
        self._window.send_all_again()
        await self._tell()
        return self._stream

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def _each(texts: Iterable[str] | AsyncIterable[str]) -> AsyncGenerator[str, None]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text
