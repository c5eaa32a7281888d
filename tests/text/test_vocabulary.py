"""Ids of a vocabulary, and the text that grows out of them."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.bundle.reading import UncheckedBundle, read_bundle
from dragoman_server.errors import BundleError
from dragoman_server.text.streaming import TextStream
from dragoman_server.text.vocabulary import Vocabulary
from dragoman_server.text.vocabulary_file import load_vocabularies
from support import MODEL
from support.tokenizers import TRAINED
from support.vocabularies import TINY, VOCABULARIES


def spelt(*values: int) -> list[int]:
    """The pieces of some bytes."""
    found = [TINY.find(f"<0x{value:02X}>") for value in values]
    return [token for token in found if token is not None]


@cache
def tokens(pieces: Vocabulary) -> st.SearchStrategy[list[int]]:
    """Of any kind, with more of those that are rare in a translation."""
    marked = [t for t in range(pieces.size) if pieces.piece(t) in ("▁", "▁▁", "<unk>", "<s>")]
    kinds = [st.integers(0, pieces.size - 1), st.sampled_from(marked)]
    spelling = [t for t in range(pieces.size) if pieces.is_byte(t)]
    if spelling:
        # Beginnings and continuations of letters, a line break, spaces of two and three bytes.
        often = (0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0x0A, 0x20, 0xC2, 0xA0, 0xE2, 0xA8, 0x85)
        kinds += [st.sampled_from(spelling), st.sampled_from([spelling[value] for value in often])]
    return st.lists(st.one_of(kinds), max_size=24)


@pytest.mark.parametrize("kind", VOCABULARIES)
@given(data=st.data())
def test_what_a_stream_says_is_never_taken_back(kind: str, data: st.DataObject) -> None:
    pieces = VOCABULARIES[kind]
    ids = data.draw(tokens(pieces))
    final = pieces.decode(ids)
    stream = TextStream(pieces)
    shown = ""
    for number, token in enumerate(ids):
        delta = stream.add(token)
        shown += delta
        assert final.startswith(shown)
        assert pieces.decode(ids[: number + 1]).startswith(shown)
        assert stream.sent == len(shown)
    assert shown + final[stream.sent :] == final
    assert final == final.strip()
    assert len(final.splitlines()) <= 1


def test_a_stream_gives_each_word_as_it_comes_and_the_space_with_the_next() -> None:
    stream = TextStream(TINY)
    assert [stream.add(token) for token in TINY.encode("the house of the goat")] == [
        *("the", " house", " of", " the", " goat")
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0xC3, 0xA9), "é"),
        ((0xF0, 0x9F, 0x98, 0x80), "😀"),
        ((0xF0, 0x9F, 0x98), ""),  # no letter: left out
        ((0xA9,), ""),
        ((0xC3, 0xC3, 0xA9), "é"),
        ((0xED, 0xA0, 0x80), ""),  # a surrogate, which UTF-8 does not have
        ((0x00,), "\0"),
    ],
)
def test_bytes_are_held_back_until_it_is_certain_which_letters_they_are(
    values: tuple[int, ...], text: str
) -> None:
    the, ids = TINY.encode("the"), spelt(*values)
    stream = TextStream(TINY)
    assert [stream.add(token) for token in [*the, *ids, *the]] == [
        "the",
        *[""] * len(ids),
        f"{text} the",
    ]
    at_the_end = TextStream(TINY)
    assert [at_the_end.add(token) for token in [*the, *ids]] == ["the", *[""] * len(ids)]
    assert TINY.decode([*the, *ids])[at_the_end.sent :] == text


@pytest.mark.parametrize("mark", ["\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_line_break_that_is_spelt_in_bytes_becomes_a_space(mark: str) -> None:
    the, ids = TINY.encode("the"), spelt(*mark.encode())
    assert TINY.decode([*the, *ids, *the]) == "the  the"
    assert TINY.decode([*ids, *the, *ids]) == "the"


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(text=st.text())
def test_decoding_undoes_encoding_but_for_white_space(kind: str, text: str) -> None:
    pieces = VOCABULARIES[kind]
    one_line = "".join(" " if letter.splitlines() == [""] else letter for letter in text)
    assert pieces.decode(pieces.encode(text)) == one_line.replace("▁", " ").strip()


def test_texts_are_encoded_together_as_they_are_alone() -> None:
    texts = ["the house", "", "goat ж"]
    assert TINY.encode_all(texts) == [TINY.encode(text) for text in texts]


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_every_piece_is_found_and_nothing_else(kind: str) -> None:
    pieces = VOCABULARIES[kind]
    assert [pieces.find(pieces.piece(token)) for token in range(pieces.size)] == [
        *range(pieces.size)
    ]
    assert [pieces.find(other) for other in ("", "\0", "▁nonsensical", "<0x1>", "the house")] == [
        None
    ] * 5


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_a_vocabulary_spells_its_own_letters_and_no_others(kind: str) -> None:
    pieces = VOCABULARIES[kind]
    assert pieces.spells("")
    assert pieces.spells("the house of number 7")
    assert not any(pieces.spells(text) for text in ("ж", "the жouse", "日", "😀", "\u20e3"))


def test_bytes_are_those_of_the_vocabulary() -> None:
    assert sum(map(TINY.is_byte, range(TINY.size))) == 256
    assert not any(map(VOCABULARIES["without bytes"].is_byte, range(60)))


def test_a_bundles_vocabularies_are_one_where_the_file_is() -> None:
    bundle = read_bundle(MODEL)
    source, target = load_vocabularies(bundle)
    assert source is target
    assert source.size == bundle.manifest.dimensions.source_vocabulary
    assert source.decode(source.encode("Olá, mundo!")) == "Olá, mundo!"


def two_files(path: Path, source: bytes, target: bytes) -> UncheckedBundle:
    (path / "source.spm").write_bytes(source)
    (path / "target.spm").write_bytes(target)
    manifest = read_bundle(MODEL).manifest
    sizes = replace(manifest.dimensions, source_vocabulary=320, target_vocabulary=320)
    return UncheckedBundle(
        path,
        replace(
            manifest,
            dimensions=sizes,
            source_tokenizer="source.spm",
            target_tokenizer="target.spm",
        ),
    )


def test_a_bundle_may_have_two_vocabularies(tmp_path: Path) -> None:
    source, target = load_vocabularies(
        two_files(tmp_path, TRAINED["unigram"].model, TRAINED["bpe"].model)
    )
    assert source.encode("the goat") == TINY.encode("the goat")
    assert target.encode("the goat") == VOCABULARIES["bpe"].encode("the goat")


@pytest.mark.parametrize(
    "damaged",
    [b"", b"nonsense", TRAINED["bpe"].model[:-1], TRAINED["bpe"].model[:1000], b"\0" * 64],
)
def test_a_damaged_vocabulary_is_refused_by_name(tmp_path: Path, damaged: bytes) -> None:
    bundle = two_files(tmp_path, TRAINED["unigram"].model, damaged)
    with pytest.raises(BundleError, match=r"target\.spm: not a SentencePiece model$"):
        load_vocabularies(bundle)


def test_a_vocabulary_that_is_missing_is_refused_by_name(tmp_path: Path) -> None:
    bundle = two_files(tmp_path, TRAINED["unigram"].model, b"")
    (tmp_path / "source.spm").unlink()
    with pytest.raises(BundleError, match=r"source\.spm: not a SentencePiece model$"):
        load_vocabularies(bundle)


def test_a_vocabulary_of_another_size_than_the_models_is_refused() -> None:
    bundle = read_bundle(MODEL)
    dimensions = bundle.manifest.dimensions
    size = dimensions.source_vocabulary
    for sizes in (
        replace(dimensions, source_vocabulary=size - 1),
        replace(dimensions, target_vocabulary=size - 1),
    ):
        other = replace(bundle, manifest=replace(bundle.manifest, dimensions=sizes))
        message = rf"tokenizer\.spm: has {size} pieces, the model {size - 1}$"
        with pytest.raises(BundleError, match=message):
            load_vocabularies(other)
