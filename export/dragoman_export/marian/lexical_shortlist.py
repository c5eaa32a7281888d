"""Marian's lexical shortlist: which target tokens are likely for each source token.

It has two forms. The binary one, little endian:

    u64 magic, u64 checksum, u64 tokens for every sentence, u64 most tokens of a source token
    u64 number of offsets, u64 number of entries
    u64 offsets, one for each source token and one more: where its entries begin
    u32 entries: target tokens, of each source token by their ids

Text has a line for each pair of tokens: target, source and probability.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from dragoman_export.errors import ExportError
from dragoman_server.text.vocabulary import Vocabulary

MAGIC = 0xF11A48D5013417F5
MAX_BYTES = 1 << 30
"""Most bytes of a shortlist, in either form."""
FREQUENT, BEST = 50, 50
"""Tokens for every sentence, and most tokens of a source token, where a file does not say."""
_HEADER = struct.Struct("<6Q")
_WORDS = (1 << 64) - 1
_CHUNK = 1 << 16
"""Words that the checksum is computed of at a time."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LexicalShortlist:
    """Target tokens of each source token, as Marian has them."""

    frequent: int
    """Number of target tokens that every sentence has: those with the smallest ids."""
    offsets: Ints
    """Where the entries of each source token begin, and at last where those of the last end."""
    entries: Ints
    """Target tokens of all source tokens."""
    ranked: bool
    """Whether the entries of a source token are the likeliest first, and not the smallest."""


def read_lexical_shortlist(
    content: bytes,
    name: str,
    source: Vocabulary,
    target: Vocabulary,
) -> LexicalShortlist:
    """Read a shortlist in either form. Raises ``ExportError`` if it is damaged."""
    is_binary = content[:8] == struct.pack("<Q", MAGIC)
    try:
        found = _read_binary(content) if is_binary else _read_text(content, source, target)
        _check(found, source.size, target.size)
    except ValueError as error:
        raise ExportError(f"{name}: {error}") from None
    return found


def _read_binary(content: bytes) -> LexicalShortlist:
    if len(content) < _HEADER.size:
        raise ValueError("cut off in the header of a shortlist")
    _, checksum, frequent, _, offsets, entries = _HEADER.unpack_from(content)
    expected = _HEADER.size + 8 * offsets + 4 * entries
    if expected != len(content):
        raise ValueError(f"a shortlist of {expected} bytes, and the file has {len(content)}")
    if checksum != checksum_of(content):
        raise ValueError("damaged: the checksum of the shortlist is another")
    starts = np.frombuffer(content, "<u8", offsets, _HEADER.size)
    if offsets and int(starts.max()) > entries:
        raise ValueError("a shortlist whose offsets lead out of it")
    return LexicalShortlist(
        frequent,
        starts.astype(np.int64),
        np.frombuffer(content, "<u4", entries, _HEADER.size + 8 * offsets).astype(np.int64),
        ranked=False,
    )


def checksum_of(content: bytes) -> int:
    """Return the checksum of a binary shortlist, which is of all its words but the first two."""
    seed = 0
    words = memoryview(content)[16 : len(content) // 8 * 8].cast("Q")
    for at in range(0, len(words), _CHUNK):
        for word in words[at : at + _CHUNK].tolist():
            seed ^= (word + 0x9E3779B9 + (seed << 6 & _WORDS) + (seed >> 2)) & _WORDS
    return seed


def _read_text(content: bytes, source: Vocabulary, target: Vocabulary) -> LexicalShortlist:
    """Read lines of a target token, a source token and a probability."""
    ids = [{each.piece(token): token for token in range(each.size)} for each in (target, source)]
    pairs: dict[tuple[int, int], float] = {}
    for number, line in enumerate(_lines(content), 1):
        fields = line.split()
        if not fields or "NULL" in fields[:2]:
            continue
        try:
            target_piece, source_piece, probability = fields
            likely = float(probability)
        except ValueError:
            raise ValueError(
                f"line {number} is not a target token, a source token and a probability"
            ) from None
        found = tuple(
            side.get(piece) for side, piece in zip(ids, (target_piece, source_piece), strict=True)
        )
        if found[0] is not None and found[1] is not None:
            key = (found[1], found[0])
            pairs[key] = max(likely, pairs.get(key, likely))
    if not pairs:
        raise ValueError("a shortlist without a pair of the vocabularies' tokens")
    return _ranked(pairs, source.size)


def _lines(content: bytes) -> Iterator[str]:
    try:
        yield from content.decode().split("\n")
    except UnicodeDecodeError:
        raise ValueError("neither a binary shortlist nor text") from None


def _ranked(pairs: dict[tuple[int, int], float], source_vocabulary: int) -> LexicalShortlist:
    lists: list[list[tuple[float, int]]] = [[] for _ in range(source_vocabulary)]
    for (source, target), likely in pairs.items():
        lists[source].append((-likely, target))
    best: list[list[int]] = [[t for _, t in islice(sorted(line), BEST)] for line in lists]
    return LexicalShortlist(
        FREQUENT,
        np.cumsum([0, *map(len, best)]),
        np.array([token for line in best for token in line], np.int64),
        ranked=True,
    )


def _check(found: LexicalShortlist, source_vocabulary: int, target_vocabulary: int) -> None:
    """Raise ``ValueError`` if a shortlist is not one of these vocabularies."""
    offsets, entries = found.offsets, found.entries
    if len(offsets) != source_vocabulary + 1:
        raise ValueError(
            f"a shortlist of {len(offsets) - 1} source tokens, and the model has "
            f"{source_vocabulary}"
        )
    if offsets[0] != 0 or offsets[-1] != len(entries) or (np.diff(offsets) < 0).any():
        raise ValueError("a shortlist whose offsets lead out of it")
    if entries.size and not 0 <= int(entries.min()) <= int(entries.max()) < target_vocabulary:
        raise ValueError("a shortlist with tokens that the model does not have")
