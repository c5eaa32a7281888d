"""Marian's lexical shortlists: what is in their files, and what becomes of it."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_export.errors import ExportError
from dragoman_export.marian.importer import ImportSettings, read_origin
from dragoman_export.marian.lexical_shortlist import (
    BEST,
    FREQUENT,
    LexicalShortlist,
    checksum_of,
    read_lexical_shortlist,
)
from dragoman_export.marian.shortlists import bundle_shortlist
from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS, Shortlist
from dragoman_server.text.vocabulary import Vocabulary
from support.marian_models import (
    END,
    UNKNOWN,
    MarianModel,
    sentencepiece_model,
    shortlist_bytes,
    shortlist_lines,
)

SIZE = 120
VOCABULARY = Vocabulary(sentencepiece_model(SIZE, 1))
LINES = shortlist_lines(SIZE, SIZE)
BINARY = shortlist_bytes(LINES, frequent=6)
TEXT = MarianModel().shortlist_text().encode()


def read(content: bytes) -> LexicalShortlist:
    return read_lexical_shortlist(content, "lex", VOCABULARY, VOCABULARY)


def lines_of(found: LexicalShortlist) -> list[list[int]]:
    return [part.tolist() for part in np.split(found.entries, found.offsets[1:-1])]


def bundled(lines: list[list[int]], *, is_shared: bool = True, frequent: int = 6) -> Shortlist:
    found = LexicalShortlist(
        frequent,
        np.cumsum([0, *map(len, lines)]),
        np.array([token for line in lines for token in line], np.int64),
        ranked=False,
    )
    return bundle_shortlist(
        found, end=END, unknown=UNKNOWN, is_shared=is_shared, target_vocabulary=SIZE
    )


def test_a_binary_file_has_the_tokens_of_each_source_token_by_their_ids() -> None:
    found = read(BINARY)
    assert found.frequent == 6
    assert not found.ranked
    assert lines_of(found) == [sorted(line) for line in LINES]


def test_text_has_the_likeliest_first() -> None:
    found = read(TEXT)
    assert found.frequent == FREQUENT
    assert found.ranked
    assert lines_of(found) == LINES


def test_text_of_more_pairs_keeps_the_best() -> None:
    pieces = [VOCABULARY.piece(token) for token in range(2, 2 + BEST + 20)]
    lines = [f"{piece} {pieces[0]} {0.9 - n / 100:.3f}" for n, piece in enumerate(pieces)]
    found = read("\n".join([*reversed(lines), f"unheard {pieces[0]} 0.9"]).encode())
    assert lines_of(found)[2] == [*range(2, 2 + BEST)]


DAMAGED = {
    "one bit": (BINARY[:200] + bytes([BINARY[200] ^ 1]) + BINARY[201:], "the checksum"),
    "cut off": (BINARY[:-4], f"a shortlist of {len(BINARY)} bytes"),
    "cut off in its header": (BINARY[:20], "cut off in the header"),
    "of more entries than bytes": (
        BINARY[:40] + struct.pack("<Q", 1 << 62) + BINARY[48:],
        "bytes, and the file has",
    ),
    "of another vocabulary": (shortlist_bytes(LINES[:-1], 6), "of 119 source tokens"),
    "tokens outside": (shortlist_bytes([[SIZE], *LINES[1:]], 6), "tokens that the model does not"),
    "neither": (b"\xff\xfe\x00", "neither a binary shortlist nor text"),
    "text of two columns": (b"a b\n", "line 1 is not a target token"),
    "text without a probability": (b"a b c\n", "line 1 is not a target token"),
    "text of other words": (b"one two 0.5\n", "without a pair"),
    "nothing": (b"", "without a pair"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_shortlist_is_refused_in_a_line(case: str) -> None:
    content, says = DAMAGED[case]
    with pytest.raises(ExportError, match=says) as refused:
        read(content)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("offsets", [[4, 2, 8], [0, 9, 8], [0, 1 << 63, 8]])
def test_offsets_that_lead_elsewhere_are_refused(offsets: list[int]) -> None:
    lines = [[2, 3]] * SIZE
    content = bytearray(shortlist_bytes(lines, 6))
    for place, offset in zip((0, 1, SIZE), offsets, strict=True):
        struct.pack_into("<Q", content, 48 + 8 * place, offset)
    struct.pack_into("<Q", content, 8, checksum_of(bytes(content)))
    with pytest.raises(ExportError, match="offsets lead out"):
        read(bytes(content))


@settings(max_examples=200, deadline=None)
@given(
    content=st.sampled_from([BINARY, TEXT]),
    places=st.lists(st.tuples(st.integers(0, 6000), st.binary(min_size=1, max_size=9)), max_size=4),
    repair=st.booleans(),
)
def test_whatever_bytes_there_are_the_reader_gives_a_shortlist_or_a_line(
    content: bytes, places: list[tuple[int, bytes]], repair: bool
) -> None:
    changed = bytearray(content)
    for at, data in places:
        at %= len(changed)
        changed[at : at + len(data)] = data[: len(changed) - at]
    if repair and len(changed) > 16:
        struct.pack_into("<Q", changed, 8, checksum_of(bytes(changed)))
    says = ""
    try:
        found = read(bytes(changed))
        bundle_shortlist(
            found, end=END, unknown=UNKNOWN, is_shared=True, target_vocabulary=SIZE
        ).check(SIZE, SIZE, END)
    except ExportError as error:
        says = str(error)
    assert "\n" not in says


def test_a_sentence_may_become_what_it_may_in_marian() -> None:
    shortlist = bundled(LINES)
    assert shortlist.always.tolist() == [END, 2, 3, 4, 5]
    source = (11, 25, 37)
    found = shortlist.tokens_for(source)
    assert found is not None
    expected = {*range(6), *source, *(token for each in source for token in LINES[each])}
    assert {*found.tolist()} == expected - {UNKNOWN}


def test_of_two_vocabularies_nothing_is_copied() -> None:
    found = bundled(LINES, is_shared=False).tokens_for((11, 25))
    assert found is not None
    assert {*found.tolist()} == {*range(6), *LINES[11], *LINES[25]} - {UNKNOWN}


def test_a_token_without_entries_may_become_any() -> None:
    assert LINES[20] == []
    assert bundled(LINES).tokens_for((11, 20)) is None


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_token_whose_entries_every_sentence_has_is_no_token_without(is_shared: bool) -> None:
    lines = [list(line) for line in LINES]
    lines[3] = [2, 4]
    found = bundled(lines, is_shared=is_shared).tokens_for((3,))
    assert found is not None
    assert found.tolist() == [END, 2, 3, 4, 5]


def test_lists_that_are_not_ranked_may_be_longer(tmp_path: Path) -> None:
    for form, longest in (("bin", 2 * MAX_SHORTLIST_TOKENS), ("txt", MAX_SHORTLIST_TOKENS)):
        path = MarianModel(shortlist=form, is_quantized=True).write(tmp_path / form)
        shortlist = read_origin(path, ImportSettings()).shortlist
        assert shortlist is not None
        assert shortlist.max_tokens == longest


def test_far_too_many_tokens_of_one_are_refused() -> None:
    many = LexicalShortlist(6, np.array([0, 5000, 5000]), np.full(5000, 7), ranked=False)
    with pytest.raises(ExportError, match="5000 tokens for one"):
        bundle_shortlist(many, end=END, unknown=UNKNOWN, is_shared=False, target_vocabulary=SIZE)
