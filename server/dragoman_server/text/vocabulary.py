"""Text to token ids and back, with a SentencePiece model.

Models from elsewhere have a table of ids of their own: SentencePiece cuts a text into pieces, and
the table says which id each piece has. ``vocabulary_file`` reads both from a bundle.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from sentencepiece import SentencePieceProcessor

_LINE_BREAKS = str.maketrans(dict.fromkeys("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
"""A vocabulary with bytes can spell them; a translated sentence has none."""
_SPACE = "▁"


class Vocabulary:
    """The vocabulary of one side of a model."""

    def __init__(self, model: bytes) -> None:
        self._processor = SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        self.size: int = self._processor.vocab_size()

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._processor.encode(text))

    def encode_all(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        # One by one: given a list, SentencePiece starts threads for it, which takes as long as
        # forty sentences.
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Without white space around it, and on one line."""
        return self._text(ids).translate(_LINE_BREAKS).strip()

    def _text(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode(list(ids))
        return text

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


class MappedVocabulary(Vocabulary):
    """The vocabulary of one side of a model that has a table of ids."""

    def __init__(
        self, model: bytes, ids: Mapping[str, int], unknown: int, hidden: Collection[int], size: int
    ) -> None:
        """``size`` is the model's: some ids may have no piece."""
        super().__init__(model)
        self.size = size
        self._ids = ids
        self._unknown = unknown
        self._hidden = frozenset(hidden)
        self._names = {token: piece for piece, token in ids.items()}
        for token in (*self._names, unknown, *hidden):
            if not 0 <= token < size:
                raise ValueError(f"has the id {token}, and the model {size} tokens")

    def encode(self, text: str) -> tuple[int, ...]:
        # By name, and not by SentencePiece's ids: a letter that is unknown to one side's model may
        # have an id through the other's.
        pieces = self._processor.encode(text, out_type=str)
        return tuple(self._ids.get(piece, self._unknown) for piece in pieces)

    def _text(self, ids: Sequence[int]) -> str:
        names = [self._names[t] for t in ids if t in self._names and t not in self._hidden]
        # Pieces that this side's model does not know come back as they are, mark of space and all.
        text: str = self._processor.decode(names).replace(_SPACE, " ") if names else ""
        return text

    def piece(self, token: int) -> str:
        return self._names.get(token, self._names.get(self._unknown, ""))

    def find(self, piece: str) -> int | None:
        return self._ids.get(piece)

    def spells(self, text: str) -> bool:
        return all(token not in self._foreign for token in self.encode(text))

    @cached_property
    def _bytes(self) -> frozenset[int]:
        processor = self._processor
        known = ((self._names[t], t) for t in self._names)
        return frozenset(
            token for name, token in known if processor.is_byte(processor.piece_to_id(name))
        )

    @cached_property
    def _foreign(self) -> frozenset[int]:
        return self._bytes | {self._unknown}
