"""Requests of the wire from the arguments of the SDK, for the sync and the async client."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import CallError, ConfigurationError, UnavailableError
from dragoman_client._options import Options
from dragoman_client._results import Translation, translation
from dragoman_client._statuses import from_status


@dataclass(frozen=True)
class Job:
    """What all texts of a call have in common."""

    source: str | None
    target: str | None
    model: str | None
    options: Options | None

    def _chosen(self) -> dict[str, str]:
        return {
            "source_language": self.source or "",
            "target_language": self.target or "",
            "model": self.model or "",
        }

    def _message(self) -> pb.Options | None:
        return self.options.to_message() if self.options else None

    def translate(self, texts: Sequence[str]) -> pb.TranslateRequest:
        _check_texts(texts)
        return pb.TranslateRequest(texts=texts, **self._chosen(), options=self._message())

    def stream(self, text: str) -> pb.TranslateStreamRequest:
        _check_texts([text])
        return pb.TranslateStreamRequest(text=text, **self._chosen(), options=self._message())

    def item(self, number: int, text: str, *, first: bool) -> pb.TranslateBulkRequest:
        """Of a stream; only the first says how."""
        if not first:
            return pb.TranslateBulkRequest(id=str(number), text=text)
        return pb.TranslateBulkRequest(
            id=str(number), text=text, **self._chosen(), options=self._message()
        )

    def score(
        self, pairs: Iterable[tuple[str, str]], length_penalty: float | None, token_scores: bool
    ) -> pb.ScoreRequest:
        return pb.ScoreRequest(
            pairs=[pb.ScorePair(source=source, target=target) for source, target in pairs],
            **self._chosen(),
            length_penalty=length_penalty,
            token_scores=token_scores,
        )


def result(response: pb.TranslateBulkResponse) -> Translation | CallError:
    """Of an item of a stream."""
    if response.WhichOneof("result") == "error":
        return from_status(response.error)
    return translation(response.translation)


def ended_early() -> UnavailableError:
    return UnavailableError("the server ended the stream before its last answer")


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise ConfigurationError("texts is one text: give a list, or call translate")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigurationError(f"text {number} is {type(text).__name__}, not str")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigurationError(
                f"text {number} has half of a surrogate pair, which is no text"
            ) from None
