"""The client for programs without an event loop. ``_async_client`` mirrors it."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client import _glossaries, _results
from dragoman_client._base import Attempt, ClientBase
from dragoman_client._bulk.threads import Many
from dragoman_client._connection import TLS, open_channels
from dragoman_client._errors import CallError
from dragoman_client._glossaries import Glossary
from dragoman_client._messages import RequestBuilder, check_many
from dragoman_client._options import Options
from dragoman_client._results import DetectedLanguage, Model, Score, Translation
from dragoman_client._retries import Retries
from dragoman_client._statuses import from_rpc_error
from dragoman_client._types import checked_timeout, require_text, wrong_type

R = TypeVar("R")


class Client(ClientBase[grpc.Channel]):
    """Calls servers of Dragoman.

        with Client("localhost:50051") as client:
            found = client.translate("Good morning.", source_language="en", target_language="pt")
            print(found.text)

    Several addresses are used in turns, and share what ``translate_many`` has to do. Without any,
    they are those of ``DRAGOMAN_ADDRESS``, with commas between them, or else localhost:50051. The
    key is that of ``DRAGOMAN_KEY`` where none is given.

    A call takes at most ``timeout`` seconds, retries included. May be shared by threads.
    """

    def __init__(
        self,
        *addresses: str,
        tls: TLS | None = None,
        key: str | None = None,
        timeout: float = 60.0,
        retries: Retries = Retries(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(addresses, tls, key, timeout, retries, open_channels)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; calls are not possible any more."""
        for channel in self._channels.take_all():
            channel.close()

    def translate(
        self,
        text: str,
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Translation:
        """Translate a sentence, or a text of many."""
        require_text("text", text, "translate_batch takes several")
        return self.translate_batch(
            [text],
            source_language=source_language,
            target_language=target_language,
            model=model,
            options=options,
            timeout=timeout,
        )[0]

    def translate_batch(
        self,
        texts: Sequence[str],
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> list[Translation]:
        """Translate texts in one call, all or none."""
        request = RequestBuilder(source_language, target_language, model, options).translate(texts)
        if not request.texts:
            return []
        response: pb.TranslateResponse = self._call(
            lambda stub, **more: stub.Translate(request, **more), timeout
        )
        return [_results.translation(message) for message in response.translations]

    def stream(
        self,
        text: str,
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        timeout: float | None = None,
        ended: Callable[[Translation], None] | None = None,
    ) -> Generator[str, None, None]:
        """Yield pieces of the translation as they come; together they are the translation.

        ``ended`` is called with the whole translation, with score and counts, after the last piece.
        """
        request = RequestBuilder(source_language, target_language, model, options).stream(text)
        if ended is not None and not callable(ended):
            raise wrong_type("ended", ended, "a function")
        if timeout is not None:
            checked_timeout(timeout)
        return self._stream(request, timeout, ended)

    def translate_many(
        self,
        texts: Iterable[str],
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        model: str | None = None,
        options: Options | None = None,
        window: int | None = None,
    ) -> Generator[Translation | CallError, None, None]:
        """Translate any number of texts, and yield the results in their order.

        Several addresses share the work: each gets texts in proportion to how fast it answers. A
        server that goes away is waited for, while the others go on with its texts; nothing is lost
        or comes twice. A text that fails gives its error in its place.

        At most ``window`` texts are under way, 256 for each address where it is None. ``texts`` is
        read in a thread of its own, as far ahead as the window.
        """
        builder = RequestBuilder(source_language, target_language, model, options)
        check_many(texts, window)
        work = self._work(builder, window)
        return Many(texts, work, self._open_bulk, self._explain).results()

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        model: str | None = None,
        length_penalty: float | None = None,
        token_scores: bool = False,
        timeout: float | None = None,
    ) -> list[Score]:
        """Score pairs of a sentence and its translation: how probable is each translation?"""
        request = RequestBuilder(source_language, target_language, model, None).score(
            pairs, length_penalty, token_scores
        )
        if not request.pairs:
            return []
        response: pb.ScoreResponse = self._call(
            lambda stub, **more: stub.Score(request, **more), timeout
        )
        return [_results.score(message) for message in response.scores]

    def detect(self, text: str, *, timeout: float | None = None) -> list[DetectedLanguage]:
        """Return the languages that a text may be in, of those that the server translates from.

        The most likely comes first. ``source_language="auto"`` translates from it right away.
        """
        require_text("text", text)
        request = pb.DetectRequest(texts=[text])
        response: pb.DetectResponse = self._call(
            lambda stub, **more: stub.Detect(request, **more), timeout
        )
        return [_results.detected(message) for message in response.detections[0].languages]

    def models(self, *, timeout: float | None = None) -> list[Model]:
        """Return the models that a server has loaded."""
        response: pb.ListModelsResponse = self._call(
            lambda stub, **more: stub.ListModels(pb.ListModelsRequest(), **more), timeout
        )
        return [_results.model(message) for message in response.models]

    def create_glossary(
        self,
        name: str,
        entries: Mapping[str, str],
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        timeout: float | None = None,
    ) -> Glossary:
        """Have a server keep a glossary, for ``Options.glossary_name``."""
        request = _glossaries.create_request(name, entries, source_language, target_language)
        response: pb.CreateGlossaryResponse = self._call(
            lambda stub, **more: stub.CreateGlossary(request, **more), timeout
        )
        return _glossaries.glossary(response.glossary)

    def glossaries(self, *, timeout: float | None = None) -> list[Glossary]:
        """Return the glossaries that a server keeps for this key, without their terms."""
        response: pb.ListGlossariesResponse = self._call(
            lambda stub, **more: stub.ListGlossaries(pb.ListGlossariesRequest(), **more), timeout
        )
        return [_glossaries.glossary(message) for message in response.glossaries]

    def glossary(self, name: str, *, timeout: float | None = None) -> Glossary:
        """Return a glossary that a server keeps, with its terms."""
        require_text("name", name)
        request = pb.GetGlossaryRequest(name=name)
        response: pb.GetGlossaryResponse = self._call(
            lambda stub, **more: stub.GetGlossary(request, **more), timeout
        )
        return _glossaries.glossary(response.glossary)

    def delete_glossary(self, name: str, *, timeout: float | None = None) -> None:
        """Remove a glossary that a server keeps."""
        require_text("name", name)
        request = pb.DeleteGlossaryRequest(name=name)
        self._call(lambda stub, **more: stub.DeleteGlossary(request, **more), timeout)

    def health(self, *, timeout: float | None = None) -> bool:
        """Ask whether a server takes requests. Raises where none can be reached."""
        attempt = self._begin(timeout)
        try:
            answer: bytes = self._check_health(attempt)
        except grpc.RpcError as raised:
            error = from_rpc_error(raised)
            raise self._explain(error, attempt.address, attempt.seconds) from None
        return self._is_serving(answer)

    def _call(self, call: Callable[..., R], timeout: float | None) -> R:
        attempt = self._begin(timeout)
        while True:
            try:
                return call(self._stub(attempt), **self._with(attempt))
            except grpc.RpcError as raised:
                error = from_rpc_error(raised)
            self._wait_or_raise(error, attempt)

    def _stream(
        self,
        request: pb.TranslateStreamRequest,
        timeout: float | None,
        ended: Callable[[Translation], None] | None,
    ) -> Generator[str, None, None]:
        attempt = self._begin(timeout)
        while True:
            call = self._stub(attempt).TranslateStream(request, **self._with(attempt))
            begun = False
            try:
                for response in call:
                    if response.WhichOneof("event") == "delta":
                        begun = True
                        yield response.delta
                    elif ended is not None:
                        ended(_results.translation(response.translation))
                return
            except grpc.RpcError as raised:
                error = from_rpc_error(raised)
                # What was handed on can't be taken back.
                self._wait_or_raise(error, attempt, may_retry=not begun)
            finally:
                call.cancel()

    def _wait_or_raise(self, error: CallError, attempt: Attempt, *, may_retry: bool = True) -> None:
        delay = self._delay(error, attempt) if may_retry else None
        if delay is None:
            raise self._explain(error, attempt.address, attempt.seconds) from None
        time.sleep(delay)
