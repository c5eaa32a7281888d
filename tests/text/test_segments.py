"""Where sentences begin and end."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.segments import (
    Span,
    _segment,
    between,
    has_words,
    meets,
    sentences,
    strip,
    within,
)

LANGUAGES = ("en", "pt", "de", "ja", "zh", "xx", "pt-BR", "")
FRAGMENTS = (
    *("Mr. Smith", "e.g. this", "3.14", "Wait... what?", "“Stop!” he said.", "(A. B)", '"Yes.'),
    *(". ", "! ", "? ", "… ", "。", "？", "।", " ", "\t", "\u00a0", "\u3000", "\u200b"),
    *("\n", "\r\n", "\r", "\x85", "\u2028", "\v", "\x1c", "\x1f", "A\u00a0.", "A\u2009. "),
    *("house", "дом", "日本", "घर", "بيت", "e\u0301", "😀", "🇧🇷", "👩\u200d👧", "7", "-", "…"),
    *("\n- ", "\n• ", "\n1) ", "\n> ", "\n## "),
)
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=20).map("".join)


def found(text: str, language: str = "en", *, split: bool = True) -> list[str]:
    return [span.of(text) for span in sentences(text, language, split=split)]


@given(text=TEXTS, language=st.sampled_from(LANGUAGES), split=st.booleans())
def test_nothing_is_lost_between_sentences_but_what_needs_no_translation(
    text: str, language: str, split: bool
) -> None:
    spans = list(sentences(text, language, split=split))
    for span in spans:
        assert span.of(text) == span.of(text).strip()
        assert has_words(span.of(text))
        assert len(span.of(text).splitlines()) == 1
    # In order, disjoint and inside: the gaps between them are spans too.
    gaps = between(Span(0, len(text)), spans)
    assert all(0 <= gap.start <= gap.end <= len(text) for gap in gaps)
    assert not any(has_words(gap.of(text)) for gap in gaps)
    pieces = [gaps[0].of(text)]
    for span, gap in zip(spans, gaps[1:], strict=True):
        pieces += [span.of(text), gap.of(text)]
    assert "".join(pieces) == text


@given(text=TEXTS, language=st.text(max_size=12))
def test_any_language_code_is_taken(text: str, language: str) -> None:
    list(sentences(text, language))


@given(text=TEXTS, data=st.data())
def test_no_sentence_begins_or_ends_in_what_is_whole(text: str, data: st.DataObject) -> None:
    whole: list[Span] = []
    start = 0
    for letters in text.splitlines(keepends=True):
        line = Span(start, start + len(letters))
        start = line.end
        ends = data.draw(st.lists(st.integers(line.start, line.end), max_size=6).map(sorted))
        whole += [strip(text, Span(a, b)) for a, b in zip(ends[::2], ends[1::2], strict=False)]
    whole = [span for span in whole if span.start < span.end]
    for sentence in sentences(text, "en", whole=whole):
        for span in whole:
            outside = sentence.end <= span.start or span.end <= sentence.start
            assert outside or (sentence.start <= span.start and span.end <= sentence.end)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["Mr. Smith went home.", "He was tired."]),
        ("en", ["He paid 3.50 euros.", "That is 7 % more."]),
        ("en", ['"Stop!" he said.', '"Go. Now."', "She left."]),
        ("en", ["Wait... what?", "Yes!"]),
        ("en", ["This, e.g. a house, is one.", "So is this."]),
        ("pt", ["O Exmo. Sr. Silva chegou.", "Está aqui."]),
        ("pt-BR", ["O Exmo. Sr. Silva chegou.", "Está aqui."]),
        ("pt_br", ["O Exmo. Sr. Silva chegou.", "Está aqui."]),
        ("PT", ["O Exmo. Sr. Silva chegou.", "Está aqui."]),
        ("de", ["Das ist z.B. ein Haus.", "Gut."]),
    ],
)
def test_sentences_end_where_a_reader_says(language: str, expected: list[str]) -> None:
    assert found(" ".join(expected), language) == expected


def test_sentences_without_spaces_between_them_are_found() -> None:
    assert found("これは家です。大きいですか？はい。", "ja") == [
        "これは家です。",
        "大きいですか？",
        "はい。",
    ]


def test_a_line_break_ends_a_sentence_and_a_line_without_letters_is_none() -> None:
    text = "  One\ttwo \r\n\r\n* * *\n 42.\nthree\u2028four. Five\n"
    assert found(text) == ["One\ttwo", "three", "four.", "Five"]
    assert found(text, split=False) == ["One\ttwo", "three", "four. Five"]


def test_what_a_line_of_a_list_begins_with_is_no_part_of_its_sentence() -> None:
    text = "- One. Yes!\n  • Two\n1) Three\n(2) Four\n> > Five\n## Six\n— Seven\n* - Eight"
    expected = ["One.", "Yes!", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight"]
    assert found(text) == expected
    assert found("-5 degrees") == ["-5 degrees"]
    assert found("-- Hello") == ["-- Hello"]
    assert found("- \n# \n") == []
    assert found("- One. Yes!", split=False) == ["- One. Yes!"]  # as it was given
    mark = [Span(0, 1)]  # where it is to be kept with what follows
    assert [s.of("- One") for s in sentences("- One", "en", whole=mark)] == ["- One"]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "42", "😀", "\u00a0"])
def test_a_text_without_letters_has_no_sentence(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u202f", "\u3000"])
def test_a_space_of_several_bytes_after_an_initial_is_a_space(space: str) -> None:
    text = "It was A . He left. She stayed."
    assert found(text.replace(" ", space)) == [each.replace(" ", space) for each in found(text)]


def test_where_the_splitter_panics_it_is_done_without() -> None:
    # It counts bytes here. What it raises is no Exception.
    assert _segment("en", "A\u00a0.") == ["A\u00a0."]


def test_a_long_line_is_split_like_a_short_one() -> None:
    for shift in range(40):  # where the splitter's windows end must not show
        expected = [f"{'I' * (shift + 1)} am."]
        expected += [f"Mr. Smith paid {n}.50 euros for his house." for n in range(100, 300)]
        assert found(" ".join(expected)) == expected


def test_a_sentence_that_is_longer_than_a_window_is_one() -> None:
    expected = ["Short.", "And " + "so " * 4000 + "on.", "Short again.", "b" * 20_000]
    assert found(" ".join(expected)) == expected


@pytest.mark.parametrize("unit", ["“", "‘", "`", "« ", "'", "日本。", "“a. ", "\n", "A. ", "「a"])
def test_time_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    began = time.process_time()
    list(sentences(text, "en"))
    assert time.process_time() - began < 5  # it is a tenth of that; the square is above 10


def test_spans_in_order_are_searched_by_where_they_begin() -> None:
    spans = [Span(0, 2), Span(4, 6), Span(6, 9)]
    assert within(spans, Span(0, 9)) == spans
    assert within(spans, Span(1, 6)) == [Span(4, 6)]
    assert within([], Span(0, 9)) == []
    # Overlap; an empty span is a place, and meets what goes on on both sides of it.
    assert [meets(spans, Span(at, at)) for at in range(10)] == [
        *(False, True, False, False, False, True, False, True, True, False)
    ]
    assert meets(spans, Span(2, 5))
    assert not meets(spans, Span(2, 4))
