"""``AsyncClient.translate_many``: two tasks and the caller around one window, as ``_many``."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import CallError, ConfigurationError
from dragoman_client._messages import Job, ended_early, result
from dragoman_client._results import Translation
from dragoman_client._retries import Retries, is_passing
from dragoman_client._statuses import from_rpc_error
from dragoman_client._window import Window

Open = Callable[[AsyncIterator[pb.TranslateBulkRequest]], Any]


class AsyncMany:
    def __init__(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        job: Job,
        window: int,
        retries: Retries,
    ) -> None:
        if window < 1:
            raise ConfigurationError(f"window is {window}: it must be at least 1")
        self._texts = texts
        self._job = job
        self._retries = retries
        self._window = Window(window)
        self._changed = asyncio.Condition()
        self._is_read = False
        self._problem: BaseException | None = None
        self._stream = 0

    async def results(self, open_stream: Open) -> AsyncIterator[Translation | CallError]:
        feeding = asyncio.create_task(self._feed())
        attempt = 1
        try:
            while True:
                error: CallError | None = None
                call = open_stream(self._requests(await self._next_stream()))
                try:
                    async for response in call:
                        found = result(response)
                        if isinstance(found, CallError) and is_passing(found):
                            error = found
                            break
                        attempt = 1
                        self._window.answer(int(response.id), found)
                        while (ready := self._window.next_result()) is not None:
                            await self._tell()
                            yield ready
                except grpc.RpcError as raised:
                    error = from_rpc_error(raised)
                finally:
                    call.cancel()
                if error is None and self._is_read and self._window.is_empty:
                    break
                delay = self._retries.delay(error or ended_early(), attempt, float("inf"))
                if delay is None:
                    raise error or ended_early()
                attempt += 1
                await asyncio.sleep(delay)
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            await self._next_stream()
        if self._problem is not None:
            raise self._problem

    async def _feed(self) -> None:
        try:
            async for text in _each(self._texts):
                if not isinstance(text, str):
                    raise ConfigurationError(f"a text is {type(text).__name__}, not str")
                async with self._changed:
                    await self._changed.wait_for(lambda: self._window.has_room)
                    self._window.add(text)
                    self._changed.notify_all()
        except Exception as error:  # it is the caller's: raised where the results are read
            self._problem = error
        finally:
            self._is_read = True
        await self._tell()

    async def _requests(self, stream: int) -> AsyncIterator[pb.TranslateBulkRequest]:
        first = True
        while True:
            async with self._changed:
                await self._changed.wait_for(
                    lambda: stream != self._stream or self._window.has_unsent or self._is_read
                )
            if stream != self._stream:
                return
            item = self._window.next_unsent()
            if item is None:
                return
            yield self._job.item(*item, first=first)
            first = False

    async def _next_stream(self) -> int:
        self._stream += 1
        self._window.send_all_again()
        await self._tell()
        return self._stream

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def _each(texts: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text
