"""Text to token ids and back, with a bundle's SentencePiece models."""

from collections.abc import Sequence
from functools import cached_property

from sentencepiece import SentencePieceProcessor

from dragoman_server.bundle import Bundle
from dragoman_server.errors import BundleError

_LINE_BREAKS = str.maketrans(dict.fromkeys("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
"""A vocabulary with bytes can spell them; a translated sentence has none."""


class Pieces:
    """The vocabulary of one side of a model."""

    def __init__(self, model: bytes) -> None:
        self._processor = SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        self.size: int = self._processor.vocab_size()

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._processor.encode(text))

    def encode_all(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [tuple(ids) for ids in self._processor.encode(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        """Without white space around it, and on one line."""
        text: str = self._processor.decode(list(ids))
        return text.translate(_LINE_BREAKS).strip()

    def piece(self, token: int) -> str:
        found: str = self._processor.id_to_piece(token)
        return found

    def find(self, piece: str) -> int | None:
        """The id of a piece that the vocabulary has."""
        token: int = self._processor.piece_to_id(piece)
        return token if self.piece(token) == piece else None

    def spells(self, text: str) -> bool:
        """Whether the vocabulary has all of a text's letters, so that none is unknown or bytes."""
        return all(token not in self._foreign for token in self._processor.encode(text))

    def is_byte(self, token: int) -> bool:
        return token in self._bytes

    @cached_property
    def _bytes(self) -> frozenset[int]:
        return frozenset(t for t in range(self.size) if self._processor.is_byte(t))

    @cached_property
    def _foreign(self) -> frozenset[int]:
        unknown = (t for t in range(self.size) if self._processor.is_unknown(t))
        return self._bytes | frozenset(unknown)


class TextStream:
    """The text of a translation whose tokens come one by one.

    What is returned never changes later: bytes are held back until their run has ended, because a
    further byte may belong to the same letter, and so is white space, which may be the end's.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._ids: list[int] = []
        self.sent = 0
        """Letters that were returned; the rest of the final text is still to be sent."""

    def add(self, token: int) -> str:
        """The text that is certain with this token and was not before; may be empty."""
        self._ids.append(token)
        if self._pieces.is_byte(token):
            return ""
        text = self._pieces.decode(self._ids)
        delta, self.sent = text[self.sent :], len(text)
        return delta


def load_pieces(bundle: Bundle) -> tuple[Pieces, Pieces]:
    """Of the source and of the target; the same object where the file is the same."""
    manifest = bundle.manifest
    loaded: dict[str, Pieces] = {}
    for name, size in (
        (manifest.source_tokenizer, manifest.dimensions.source_vocabulary),
        (manifest.target_tokenizer, manifest.dimensions.target_vocabulary),
    ):
        if name not in loaded:
            try:
                loaded[name] = Pieces((bundle.path / name).read_bytes())
            except (OSError, RuntimeError):
                raise BundleError(f"{bundle.path / name}: not a SentencePiece model") from None
        if loaded[name].size != size:
            raise BundleError(
                f"{bundle.path / name}: has {loaded[name].size} pieces, the model {size}"
            )
    return loaded[manifest.source_tokenizer], loaded[manifest.target_tokenizer]
