"""The segments of a document through a server: each text once, tags put back, pieces where not."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman_cli.documents.journal import Journal, Key
from dragoman_client._client import Client
from dragoman_client._errors import CallError, InvalidRequestError, ServerError
from dragoman_client._options import Options
from dragoman_client._results import Translation
from dragoman_documents import Document
from dragoman_documents.inline import by_pieces, tags_hold, texts_of

Watch = Callable[[int], None]
"""Told how many texts are done."""


@dataclass
class SegmentTranslator:
    """Translates the segments of documents, one document after the other."""

    client: Client
    asked: dict[str, Any]
    """Arguments of the SDK's calls."""
    errors: list[str] = field(default_factory=list)
    """Errors of texts that have no translation."""
    in_pieces: int = 0
    """Segments whose tags could not be put back, so that their texts were translated apart."""

    def translate(self, document: Document, journal: Journal, watch: Watch) -> dict[str, str]:
        """Return translations by the segments' ids; those without one are left out."""
        self.errors, self.in_pieces = [], 0
        wanted = {(each.text, each.has_tags): None for each in document.segments}
        waiting = [key for key in wanted if key not in journal.done]
        done = len(wanted) - len(waiting)
        watch(done)
        for key, translation in self._stream([key for key in waiting if not key[1]]):
            journal.add(key, translation)
            done += 1
            watch(done)
        for key in self._tagged([key for key in waiting if key[1]], journal):
            done += key in journal.done
            watch(done)
        return {
            each.id: journal.done[each.text, each.has_tags]
            for each in document.segments
            if (each.text, each.has_tags) in journal.done
        }

    def _tagged(self, keys: Sequence[Key], journal: Journal) -> Iterator[Key]:
        """Translate segments with tags; yield each when it is done."""
        broken: dict[Key, None] = dict.fromkeys(keys)
        options: Options = replace(self.asked["options"], markup="xml")
        for key, translation in self._stream(keys, options):
            if tags_hold(key[0], translation):
                del broken[key]
                journal.add(key, translation)
                yield key
        pieces = {(text, False): None for key in broken for text in texts_of(key[0])}
        for piece, translation in self._stream([p for p in pieces if p not in journal.done]):
            journal.add(piece, translation)
        for key in broken:
            if all((text, False) in journal.done for text in texts_of(key[0])):
                text = by_pieces(key[0], lambda text: journal.done[text, False])
                journal.add(key, text)
                self.in_pieces += 1
            yield key

    def _stream(
        self, keys: Sequence[Key], options: Options | None = None
    ) -> Iterator[tuple[Key, str]]:
        if not keys:
            return
        asked = self.asked if options is None else {**self.asked, "options": options}
        results = self.client.translate_many((text for text, _ in keys), **asked)
        for key, result in zip(keys, results, strict=True):
            if isinstance(result, Translation):
                yield key, result.text
            elif concerns_all(result):
                raise self.client._explain(result, address=0)
            else:
                self.errors.append(str(result))


def concerns_all(error: CallError) -> bool:
    """Whether every other text would fail with the same error."""
    if isinstance(error, InvalidRequestError):
        return not error.field.startswith("text")
    return not isinstance(error, ServerError)
