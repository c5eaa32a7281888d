"""Text to token ids and back, with a SentencePiece model.

Models from elsewhere have a table of ids of their own: SentencePiece cuts a text into pieces, and
the table says which id each piece has. ``vocabulary_file`` reads both from a bundle.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from sentencepiece import SentencePieceProcessor

_TIDY = str.maketrans(
    {**dict.fromkeys("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "), "\N{REPLACEMENT CHARACTER}": ""}
)
"""A vocabulary with bytes can spell line breaks, which a translated sentence does not have, and
bytes that make no letter, which are left out."""
SPACE = "▁"
"""Stands for a space in pieces."""


class Vocabulary:
    """The vocabulary of one side of a model."""

    def __init__(self, model: bytes) -> None:
        self._processor = SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        self.size: int = self._processor.vocab_size()
        self.unknown: int = self._processor.unk_id()
        """The token that stands for whatever the vocabulary has no piece for."""
        self._last: tuple[str, tuple[int, ...]] = "", ()
        """The last text that was encoded, and its tokens."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text."""
        # A sentence is encoded twice in a row: to see whether all of it has pieces, and in earnest.
        known, tokens = self._last
        if text != known:
            tokens = self._encode(text)
            self._last = text, tokens
        return tokens

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._processor.encode(text))

    def split(self, text: str) -> list[str]:
        """Return the pieces of a text, one for each token, in its own letters where they have none.

        A piece that begins a word begins with the mark of a space.
        """
        pieces: list[str] = self._processor.encode(text, out_type=str)
        return pieces

    def join(self, pieces: Sequence[str]) -> str:
        """Return the text of pieces; those that the vocabulary does not have are as they are."""
        text: str = self._processor.decode(list(pieces)) if pieces else ""
        return text.replace(SPACE, " ")

    def encode_all(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the tokens of each text."""
        # One by one: given a list, SentencePiece starts threads for it, which takes as long as
        # forty sentences.
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int], words: Iterable[str] = ()) -> str:
        """Return the text of tokens, on one line and without white space around it.

        ``words`` take the place of unknown tokens, in their order. An unknown token whose word is
        empty, or that has none, is left out.
        """
        if self.unknown in ids:
            text = self.join(self._with_words(ids, iter(words)))
        else:
            text = self._text(ids)
        return text.translate(_TIDY).strip()

    def _text(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode(list(ids))
        return text

    def _with_words(self, ids: Sequence[int], words: Iterator[str]) -> list[str]:
        pieces: list[str] = []
        for token in ids:
            if token != self.unknown:
                pieces += self._shown(token)
                continue
            word = next(words, "")
            if pieces and pieces[-1] == SPACE:  # the space of what is unknown
                pieces.pop()
            if word:
                pieces.append(SPACE + word)
        return pieces

    def _shown(self, token: int) -> list[str]:
        """Return the piece of a token, where it is shown."""
        return [self.piece(token)]

    def shown(self, ids: Iterable[int]) -> list[str]:
        """Return the piece of each token; empty for one that does not show."""
        return ["".join(self._shown(token)) for token in ids]

    def piece(self, token: int) -> str:
        """Return the spelling of a token."""
        found: str = self._processor.id_to_piece(token)
        return found

    def find(self, piece: str) -> int | None:
        """Return the token of a piece, where the vocabulary has it."""
        token: int = self._processor.piece_to_id(piece)
        return token if self.piece(token) == piece else None

    def spells(self, text: str) -> bool:
        """Whether the vocabulary has all of a text's letters, so that none is unknown or bytes."""
        return self._foreign.isdisjoint(self.encode(text))

    def cost(self, text: str) -> tuple[int, float]:
        """Return how unusual a text is: the number of its pieces, then their improbability."""
        tokens = self._processor.encode(text)
        return len(tokens), -sum(map(self._processor.get_score, tokens))

    def is_byte(self, token: int) -> bool:
        """Whether a token is one byte of a letter that the vocabulary has no piece for."""
        return token in self._bytes

    @cached_property
    def _bytes(self) -> frozenset[int]:
        return frozenset(t for t in range(self.size) if self._processor.is_byte(t))

    @cached_property
    def _foreign(self) -> frozenset[int]:
        return self._bytes | {self.unknown}


class MappedVocabulary(Vocabulary):
    """The vocabulary of one side of a model that has a table of ids."""

    def __init__(
        self, model: bytes, ids: Mapping[str, int], unknown: int, hidden: Collection[int], size: int
    ) -> None:
        """``size`` is the model's: some ids may have no piece."""
        super().__init__(model)
        self.size = size
        self._ids = ids
        self.unknown = unknown
        self._hidden = frozenset(hidden)
        self._names = {token: piece for piece, token in ids.items()}
        for token in (*self._names, unknown, *hidden):
            if not 0 <= token < size:
                raise ValueError(f"has the id {token}, and the model {size} tokens")

    def _encode(self, text: str) -> tuple[int, ...]:
        # By name, and not by SentencePiece's ids: a letter that is unknown to one side's model may
        # have an id through the other's.
        return tuple(self._ids.get(piece, self.unknown) for piece in self.split(text))

    def _text(self, ids: Sequence[int]) -> str:
        return self.join([piece for token in ids for piece in self._shown(token)])

    def _shown(self, token: int) -> list[str]:
        is_shown = token in self._names and token not in self._hidden
        return [self._names[token]] if is_shown else []

    def piece(self, token: int) -> str:
        return self._names.get(token, self._names.get(self.unknown, ""))

    def find(self, piece: str) -> int | None:
        return self._ids.get(piece)

    @cached_property
    def _bytes(self) -> frozenset[int]:
        processor = self._processor
        known = ((self._names[t], t) for t in self._names)
        return frozenset(
            token for name, token in known if processor.is_byte(processor.piece_to_id(name))
        )
