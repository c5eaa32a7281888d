"""The client for programs with an event loop. It mirrors ``_client``, which a test checks."""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import TypeVar

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_client import _results
from dragoman_client._async_many import AsyncMany
from dragoman_client._connection import HEALTH, TLS, Endpoint, checked_timeout, open_async_channels
from dragoman_client._errors import CallError, TimedOutError
from dragoman_client._messages import RequestBuilder
from dragoman_client._options import Options
from dragoman_client._results import Model, Score, Translation
from dragoman_client._retries import Retries
from dragoman_client._statuses import from_rpc_error

R = TypeVar("R")


class AsyncClient:
    """Calls servers of Dragoman.

        async with AsyncClient("localhost:50051") as client:
            print((await client.translate("Good morning.", source="en", target="pt")).text)

    Several addresses are used in turns. A call takes at most ``timeout`` seconds, retries included.
    May be shared by tasks of one event loop.
    """

    def __init__(
        self,
        *addresses: str,
        tls: TLS | None = None,
        key: str | None = None,
        timeout: float = 60.0,
        retries: Retries = Retries(),  # noqa: B008 - frozen
    ) -> None:
        self._channels = open_async_channels(Endpoint(addresses or ("localhost:50051",), tls, key))
        self._timeout = checked_timeout(timeout)
        self._retries = retries

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for channel in self._channels.take_all():
            await channel.close()

    async def translate(
        self,
        text: str,
        *,
        source: str | None = None,
        target: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Translation:
        """Translate a sentence, or a text of many."""
        (translated,) = await self.translate_batch(
            [text], source=source, target=target, model=model, options=options, timeout=timeout
        )
        return translated

    async def translate_batch(
        self,
        texts: Sequence[str],
        *,
        source: str | None = None,
        target: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> list[Translation]:
        """Translate texts in one call, all or none."""
        request = RequestBuilder(source, target, model, options).translate(texts)
        if not request.texts:
            return []
        response: pb.TranslateResponse = await self._call(
            lambda stub, **more: stub.Translate(request, **more), timeout
        )
        return [_results.translation(message) for message in response.translations]

    async def stream(
        self,
        text: str,
        *,
        source: str | None = None,
        target: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        timeout: float | None = None,
        ended: Callable[[Translation], None] | None = None,
    ) -> AsyncIterator[str]:
        """Pieces of the translation as they come; together they are the translation.

        ``ended`` is given the whole of it, with score and counts, after the last piece.
        """
        request = RequestBuilder(source, target, model, options).stream(text)
        until = self._until(timeout)
        attempt = 1
        while True:
            call = self._stub().TranslateStream(request, **self._with(until))
            begun = False
            try:
                async for response in call:
                    if response.WhichOneof("event") == "delta":
                        begun = True
                        yield response.delta
                    elif ended is not None:
                        ended(_results.translation(response.translation))
                return
            except grpc.RpcError as raised:
                error = from_rpc_error(raised)
                if begun:  # what was handed on can't be taken back
                    raise error from None
                await self._wait_or_raise(error, attempt, until)
                attempt += 1
            finally:
                call.cancel()

    def translate_many(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        *,
        source: str | None = None,
        target: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        window: int = 256,
    ) -> AsyncIterator[Translation | CallError]:
        """Translate any number of texts, in their order, with so many under way as the window.

        A text that fails gives its error in its place, and the others go on. A server that goes
        away is waited for, or another one asked; nothing is lost or comes twice. ``texts`` is
        read as far ahead as the window.
        """
        builder = RequestBuilder(source, target, model, options)
        many = AsyncMany(texts, builder, window, self._retries)
        return many.results(
            lambda requests: self._stub().TranslateBulk(
                requests, metadata=self._channels.endpoint.metadata(), wait_for_ready=False
            )
        )

    async def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        source: str | None = None,
        target: str | None = None,
        model: str | None = None,
        length_penalty: float | None = None,
        token_scores: bool = False,
        timeout: float | None = None,
    ) -> list[Score]:
        """How probable translations are: pairs of a sentence and its translation."""
        request = RequestBuilder(source, target, model, None).score(
            pairs, length_penalty, token_scores
        )
        if not request.pairs:
            return []
        response: pb.ScoreResponse = await self._call(
            lambda stub, **more: stub.Score(request, **more), timeout
        )
        return [_results.score(message) for message in response.scores]

    async def models(self, *, timeout: float | None = None) -> list[Model]:
        """What the server has loaded."""
        response: pb.ListModelsResponse = await self._call(
            lambda stub, **more: stub.ListModels(pb.ListModelsRequest(), **more), timeout
        )
        return [_results.model(message) for message in response.models]

    async def health(self, *, timeout: float | None = None) -> bool:
        """Whether the server takes requests. One that can't be reached raises."""
        check = self._channels.next().unary_unary(HEALTH)
        try:
            answer: bytes = await check(b"", **self._with(self._until(timeout)))
        except grpc.RpcError as error:
            raise from_rpc_error(error) from None
        return answer == _SERVING

    async def _call(self, call: Callable[..., Awaitable[R]], timeout: float | None) -> R:
        until = self._until(timeout)
        attempt = 1
        while True:
            try:
                return await call(self._stub(), **self._with(until))
            except grpc.RpcError as error:
                await self._wait_or_raise(from_rpc_error(error), attempt, until)
                attempt += 1

    async def _wait_or_raise(self, error: CallError, attempt: int, until: float) -> None:
        delay = self._retries.delay(error, attempt, until - time.monotonic())
        if delay is None:
            raise error from None
        await asyncio.sleep(delay)

    def _stub(self) -> TranslationServiceStub:
        return TranslationServiceStub(self._channels.next())

    def _until(self, timeout: float | None) -> float:
        return time.monotonic() + (self._timeout if timeout is None else checked_timeout(timeout))

    def _with(self, until: float) -> dict[str, object]:
        """What goes along with a call."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimedOutError("there was no time left for the call")
        return {"timeout": left, "metadata": self._channels.endpoint.metadata()}


_SERVING = b"\x08\x01"
"""grpc.health.v1.HealthCheckResponse with status SERVING, without a package for two messages."""
