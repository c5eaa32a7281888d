"""Words of a source, to put in place of tokens that a target vocabulary has no spelling for."""

from collections.abc import Sequence
from itertools import accumulate

from dragoman_server.text.vocabulary import SPACE, Vocabulary

_MAX_PIECES = 8
"""Most pieces of a word. What has more is of a script without spaces, and only a piece is taken."""
_EDGES = ".,;:!?…\"'“”‘’«»()[]{}¿¡。、，；：！？「」『』（）"
"""Marks around a word that are no part of it."""


class SourceWords:
    """The words of a source, by its tokens."""

    def __init__(self, vocabulary: Vocabulary, text: str) -> None:
        self._vocabulary = vocabulary
        self._pieces = vocabulary.split(text)
        self._numbers = list(accumulate(int(piece.startswith(SPACE)) for piece in self._pieces))
        """The number of each piece's word."""

    def __len__(self) -> int:
        """The number of the source's tokens."""
        return len(self._pieces)

    def word(self, token: int) -> str:
        """Return the word that a token of the source is part of, by the token's place."""
        first = self._numbers.index(self._numbers[token])
        pieces = self._pieces[first : first + self._numbers.count(self._numbers[token])]
        if len(pieces) > _MAX_PIECES:
            pieces = [self._pieces[token]]
        return self._vocabulary.join(pieces).strip().strip(_EDGES)

    def are_one(self, token: int, other: int) -> bool:
        """Whether two tokens of the source are parts of the same word."""
        return self._numbers[token] == self._numbers[other]


def words_for_unknown(
    ids: Sequence[int], unknown: int, sources: Sequence[int], words: SourceWords
) -> list[str]:
    """Return the word for each unknown token of a translation.

    ``sources`` has the place of the source token that each target token was made from. Unknown
    tokens in a row that were made from the same word are that word once.
    """
    found: list[str] = []
    before: int | None = None
    """The source token of the unknown token just before, if there is one."""
    for token, source in zip(ids, sources, strict=True):
        if token != unknown:
            before = None
            continue
        is_same = before is not None and words.are_one(before, source)
        found.append("" if is_same else words.word(source))
        before = source
    return found
