"""``AsyncClient.translate_many``: tasks and the caller around one window, as in ``threads``."""

import asyncio
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
)
from contextlib import aclosing, suppress
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._bulk.window import Result
from dragoman_client._bulk.work import Work
from dragoman_client._errors import CallError
from dragoman_client._statuses import from_rpc_error

Open = Callable[[int, AsyncIterator[pb.TranslateBulkRequest]], Any]
"""Begins a stream to the address of this number, with these requests; returns the call, which gives
the responses."""
Explained = Callable[[CallError, int], Awaitable[CallError]]
"""Returns an error with words that help; the number is that of its address."""


class AsyncMany:
    def __init__(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        work: Work,
        open_stream: Open,
        explained: Explained,
    ) -> None:
        self._texts = texts
        self._work = work
        self._open_stream = open_stream
        self._explained = explained
        self._changed = asyncio.Condition()
        self._problem: BaseException | None = None
        """What was raised while texts were read, or in a task of ours."""
        self._is_broken = False
        """Whether a task of ours failed, so that no more results come."""

    async def results(self) -> AsyncGenerator[Result, None]:
        """Yield the results in order; raise what ends the call early."""
        work = self._work
        serving = [self._serve(address) for address in range(work.addresses)]
        tasks = [asyncio.create_task(each) for each in (self._feed(), *serving)]
        try:
            while True:
                await self._wait(lambda: work.window.has_result or self._is_over)
                was_full = not work.window.has_room
                found = work.window.next_result()
                if found is None:
                    break
                if was_full:
                    await self._tell()
                yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if work.failure is not None:
            raise await self._explained(work.failure, work.failed_at)
        if self._problem is not None:
            raise self._problem

    @property
    def _is_over(self) -> bool:
        return self._is_broken or self._work.is_over

    async def _wait(self, holds: Callable[[], bool]) -> None:
        if not holds():
            async with self._changed:
                await self._changed.wait_for(holds)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _feed(self) -> None:
        work = self._work
        try:
            async with aclosing(_each(self._texts)) as texts:
                async for text in texts:
                    work.builder.check_item(text)
                    await self._wait(lambda: work.window.has_room)
                    is_awaited = not work.window.has_unsent
                    work.window.add(text)
                    if is_awaited:
                        await self._tell()
        except Exception as error:  # it is the caller's: raised where the results are read
            self._problem = error
        finally:
            work.is_read = True
        await self._tell()

    async def _serve(self, address: int) -> None:
        """Keep a stream open to one server while there is something to send."""
        try:
            while await self._exchange(address):
                pass
        except Exception as error:
            self._problem, self._is_broken = self._problem or error, True
            await self._tell()

    async def _exchange(self, address: int) -> bool:
        """Send through one stream until it ends; return whether there may be another one."""
        work = self._work
        await self._wait(lambda: self._is_over or work.has_work(address))
        if self._is_over:
            return False
        number = work.open(address)
        error = await self._use(
            self._open_stream(address, self._requests(address, number)), address
        )
        delay = work.close(address, error, time.monotonic())
        await self._tell()
        if delay:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wait(lambda: self._is_over), delay)
        return True

    async def _use(self, call: Any, address: int) -> CallError | None:
        """Take the answers of a stream until it ends; return the error that ended it."""
        try:
            async for response in call:
                error = self._work.take(address, response, time.monotonic())
                if self._work.is_shared or self._work.window.has_result:
                    await self._tell()
                if error is not None:
                    return error
        except grpc.RpcError as raised:
            return from_rpc_error(raised)
        finally:
            call.cancel()
        return None

    async def _requests(self, address: int, number: int) -> AsyncIterator[pb.TranslateBulkRequest]:
        """Yield the requests of a stream, each when it is its turn."""
        first = True
        while True:
            self._work.ask(address)
            await self._wait(lambda: self._work.may_go_on(address, number))
            request = self._work.next_request(address, number, time.monotonic(), first=first)
            if self._work.is_shared:
                await self._tell()
            if request is None:
                return
            yield request
            first = False


async def _each(texts: Iterable[str] | AsyncIterable[str]) -> AsyncGenerator[str, None]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text
