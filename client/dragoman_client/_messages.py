"""Requests of the wire from the arguments of the SDK, for the sync and the async client.

What can't be a request is a ``TypeError`` or a ``ConfigurationError`` here, before anything is
sent: a thread of gRPC would swallow it.
"""

from collections.abc import AsyncIterable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import (
    CallError,
    ConfigurationError,
    InvalidRequestError,
    StatusCode,
    UnavailableError,
)
from dragoman_client._options import Options
from dragoman_client._results import Translation, translation
from dragoman_client._statuses import from_status
from dragoman_client._types import (
    is_text,
    require,
    require_number,
    require_text,
    require_whole,
    wrong_type,
)

T = TypeVar("T")

_PAIRS = "[(sentence, translation), …]"


@dataclass(frozen=True)
class RequestBuilder:
    """Makes the requests of a call, out of what all its texts have in common."""

    source_language: str | None
    target_language: str | None
    model: str | None
    options: Options | None

    def __post_init__(self) -> None:
        for name, value in self._chosen().items():
            require_text(name, value)
        if self.options is not None and not isinstance(self.options, Options):
            given = self.options if isinstance(self.options, dict) else {}
            example = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise wrong_type("options", self.options, "Options", f"give Options({example})")

    def _chosen(self) -> dict[str, str]:
        given = {
            "source_language": self.source_language,
            "target_language": self.target_language,
            "model": self.model,
        }
        return {name: "" if value is None else value for name, value in given.items()}

    def _message(self) -> pb.Options | None:
        return self.options.to_message() if self.options else None

    def translate(self, texts: Sequence[str]) -> pb.TranslateRequest:
        """Return the request for some texts."""
        if isinstance(texts, str):
            raise TypeError("texts is one str: give a list of them, or call translate")
        texts = _listed("texts", texts, "texts")
        for number, text in enumerate(texts):
            require_text(f"texts[{number}]", text)
        return pb.TranslateRequest(texts=texts, **self._chosen(), options=self._message())

    def stream(self, text: str) -> pb.TranslateStreamRequest:
        """Return the request for a text that is streamed."""
        require_text("text", text)
        return pb.TranslateStreamRequest(text=text, **self._chosen(), options=self._message())

    def check_item(self, text: object) -> None:
        if not isinstance(text, str):
            raise wrong_type("a text", text, "str")

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
        for number, pair in enumerate(_listed("pairs", pairs, _PAIRS)):
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise wrong_type(f"pairs[{number}]", pair, "a pair", f"give {_PAIRS}")
            source, target = pair
            require_text(f"pairs[{number}][0]", source)
            require_text(f"pairs[{number}][1]", target)
            messages.append(pb.ScorePair(source=source, target=target))
        if length_penalty is not None:
            require_number("length_penalty", length_penalty)
        require("token_scores", token_scores, bool, "give True or False")
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
        raise TypeError("texts is one str: give several, or call translate")
    if not isinstance(texts, Iterable | AsyncIterable):
        raise wrong_type("texts", texts, "a list or another iterable")
    if window is not None:
        require_whole("window", window)
        if window < 1:
            raise ConfigurationError(f"window is {window}: it must be at least 1")


def is_of_one_item(error: CallError) -> bool:
    """Whether a stream ended because one message in it can't be taken, as too large a one."""
    bad = (StatusCode.INVALID_ARGUMENT, StatusCode.RESOURCE_EXHAUSTED)
    return isinstance(error, InvalidRequestError) and error.code in bad


def not_text(text: str | None) -> InvalidRequestError | None:
    """Return the error of an item that can't be sent; None where it can."""
    if text is None or is_text(text):
        return None
    return InvalidRequestError(
        "text has half of a surrogate pair",
        code=StatusCode.INVALID_ARGUMENT,
        reason="INVALID_UTF8",
        field="text",
    )


def ended_early() -> UnavailableError:
    return UnavailableError("the server ended the stream before its last answer")


def _listed(name: str, values: Iterable[T], instead: str) -> list[T]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong_type(name, values, "a list", f"give {instead}")
    return list(values)
