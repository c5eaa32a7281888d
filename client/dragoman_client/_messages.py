"""Requests of the wire from the arguments of the SDK, for the sync and the async client.

What can't be a request is a ``ConfigurationError`` here, before anything is sent: a thread of gRPC
would swallow it.
"""

from collections.abc import AsyncIterable, Iterable, Sequence
from dataclasses import dataclass

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import (
    CallError,
    ConfigurationError,
    InvalidRequestError,
    UnavailableError,
)
from dragoman_client._options import Options
from dragoman_client._results import Translation, translation
from dragoman_client._statuses import from_status


@dataclass(frozen=True)
class RequestBuilder:
    """Makes the requests of a call, out of what all its texts have in common."""

    source: str | None
    target: str | None
    model: str | None
    options: Options | None

    def __post_init__(self) -> None:
        for name, value in self._chosen().items():
            _check_text(name, value)
        self._message()

    def _chosen(self) -> dict[str, str]:
        return {
            "source_language": self.source or "",
            "target_language": self.target or "",
            "model": self.model or "",
        }

    def _message(self) -> pb.Options | None:
        return self.options.to_message() if self.options else None

    def translate(self, texts: Sequence[str]) -> pb.TranslateRequest:
        """Return the request for some texts."""
        if isinstance(texts, str):
            raise ConfigurationError("texts is one text: give a list, or call translate")
        texts = list(texts)
        for number, text in enumerate(texts):
            _check_text(f"text {number}", text)
        return pb.TranslateRequest(texts=texts, **self._chosen(), options=self._message())

    def stream(self, text: str) -> pb.TranslateStreamRequest:
        """Return the request for a text that is streamed."""
        _check_text("text", text)
        return pb.TranslateStreamRequest(text=text, **self._chosen(), options=self._message())

    def check_item(self, text: object) -> None:
        if not isinstance(text, str):
            raise ConfigurationError(f"a text is {type(text).__name__}, not str")

    def item(self, number: int, text: str, *, first: bool) -> pb.TranslateBulkRequest:
        """Return an item of a stream; only the first says how. What is no text is sent empty."""
        sent = "" if not_text(text) else text
        if not first:
            return pb.TranslateBulkRequest(id=str(number), text=sent)
        return pb.TranslateBulkRequest(
            id=str(number), text=sent, **self._chosen(), options=self._message()
        )

    def score(
        self, pairs: Iterable[tuple[str, str]], length_penalty: float | None, token_scores: bool
    ) -> pb.ScoreRequest:
        messages = []
        for number, (source, target) in enumerate(pairs):
            _check_text(f"the source of pair {number}", source)
            _check_text(f"the target of pair {number}", target)
            messages.append(pb.ScorePair(source=source, target=target))
        return pb.ScoreRequest(
            pairs=messages,
            **self._chosen(),
            length_penalty=length_penalty,
            token_scores=token_scores,
        )


def result(response: pb.TranslateBulkResponse) -> Translation | CallError:
    """Return what an item of a stream came to."""
    if response.WhichOneof("result") == "error":
        return from_status(response.error)
    return translation(response.translation)


def check_many(texts: Iterable[str] | AsyncIterable[str], window: int | None) -> None:
    if isinstance(texts, str):
        raise ConfigurationError("texts is one text: give several, or call translate")
    if window is not None and window < 1:
        raise ConfigurationError(f"window is {window}: it must be at least 1")


def is_of_one_item(error: CallError) -> bool:
    """Whether a stream ended because one message in it can't be taken, as too large a one."""
    bad = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    return isinstance(error, InvalidRequestError) and error.code in bad


def not_text(text: str | None) -> InvalidRequestError | None:
    """Return the error of an item that can't be sent; None where it can."""
    if text is None or _is_text(text):
        return None
    return InvalidRequestError(
        "text has half of a surrogate pair",
        code=grpc.StatusCode.INVALID_ARGUMENT,
        reason="INVALID_UTF8",
        field="text",
    )


def ended_early() -> UnavailableError:
    return UnavailableError("the server ended the stream before its last answer")


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise ConfigurationError(f"{name} is {type(text).__name__}, not str")
    if not _is_text(text):
        raise ConfigurationError(f"{name} has half of a surrogate pair, which is no text")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
