"""Tags in translations: each exactly once, balanced, and around the words that were translated."""

import html
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.markup.aligning import Aligned, Decoded, align
from dragoman_server.text.markup.document import Document
from dragoman_server.text.markup.outline import MarkupOptions
from dragoman_server.text.markup.placing import Placed, nodes_within, place, tree_of
from dragoman_server.text.markup.tokens import Syntax
from dragoman_server.text.markup.units import spans_of, units_of
from dragoman_server.text.markup.writing import Writer
from dragoman_server.text.masks import MaskSet, mask
from dragoman_server.text.segments import Span, strip
from support.marked_texts import (
    INLINE_HTML,
    empty_elements,
    is_balanced,
    tags_of,
    without_tags,
)

TARGETS = st.lists(
    st.sampled_from(("o", "carro", "vermelho,", "é", "(muito)", "rápido.", "guarda-chuva", "日本")),
    min_size=1,
    max_size=12,
).map(" ".join)


def whole(document: Document) -> Span:
    return strip(document.plain, Span(0, len(document.plain)))


def put(document: Document, target: str, weights: list[list[float]]) -> str | None:
    """Return a translation of a whole document with its tags."""
    span = whole(document)
    nodes = nodes_within(document, span)
    tree = tree_of(document, span, nodes, units_of(document.plain, span))
    assert tree is not None
    units = units_of(target, Span(0, len(target)))
    placed = place(tree, weights, units) if nodes else []
    if placed is None:
        return None
    writer = Writer(document, "pt")
    writer.add(span, target, placed)
    writer.end()
    return writer.text


def random_weights(document: Document, target: str, seed: int) -> list[list[float]]:
    drawn = random.Random(seed)
    rows = len(units_of(target, Span(0, len(target))))
    columns = len(units_of(document.plain, whole(document)))
    found = [[drawn.random() ** 8 for _ in range(columns)] for _ in range(rows)]
    return [[each / sum(row) for each in row] for row in found]


@given(INLINE_HTML, TARGETS, st.integers(0, 9))
def test_whatever_the_alignment_is_tags_come_back_once_balanced_and_around_text(
    source: str, target: str, seed: int
) -> None:
    document = Document(source, MarkupOptions(syntax=Syntax.HTML))
    if not units_of(document.plain, whole(document)):
        return
    found = put(document, target, random_weights(document, target, seed))
    if found is None:
        assert len([node for node in document.nodes if not node.is_point]) > 1
        return
    assert sorted(tags_of(found)) == sorted(tags_of(source))
    assert is_balanced(found)
    # A tag with spaces on both sides keeps both.
    assert html.unescape(without_tags(found)).split() == target.split()
    assert empty_elements(found) <= empty_elements(source)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Run <img/> now", "Corra agora", "Corra <img/> agora"),
        ("Run<img/> now", "Corra agora", "Corra<img/> agora"),
        ("Run it <img><i></i> now", "Corra agora", "Corra <img><i></i> agora"),
    ],
)
def test_an_empty_tag_keeps_the_spaces_around_it(source: str, target: str, expected: str) -> None:
    document = Document(source, MarkupOptions(syntax=Syntax.HTML))
    words = len(units_of(document.plain, whole(document)))
    first, last = [1.0] + [0.0] * (words - 1), [0.0] * (words - 1) + [1.0]
    assert put(document, target, [first, last]) == expected


def aligned(source: str, target: str, pairs: str) -> str | None:
    """Return a translation with tags, by which word of the source each word was made from."""
    document = Document(source, MarkupOptions(syntax=Syntax.HTML))
    columns = len(units_of(document.plain, whole(document)))
    weights = [[float(int(place) == column) for column in range(columns)] for place in pairs]
    return put(document, target, weights)


@pytest.mark.parametrize(
    ("source", "target", "pairs", "expected"),
    [
        ("the <b>red car</b>", "o carro vermelho", "021", "o <b>carro vermelho</b>"),
        ("<b>red</b> <i>car</i>", "carro vermelho", "10", "<i>carro</i> <b>vermelho</b>"),
        ("a <b>red <i>big</i></b> car", "carro grande vermelho", "321",
         "carro <b><i>grande</i> vermelho</b>"),
        ("<b>Hi</b>, you.", "Olá, você.", "0123", "<b>Olá</b>, você."),
        ("one<img> two", "dois um", "10", "dois um<img>"),
        ("one <img>two", "dois um", "10", "<img>dois um"),
        ("un<b>believ</b>able tale", "conto incrível", "10", "conto <b>incrível</b>"),
        ("<a><b>one two</b></a> three", "três um dois", "201", "três <a><b>um dois</b></a>"),
        # One span, though the words of it are apart: the nearer ones are taken.
        ("<b>not only</b> x y z", "não x y z só", "02341", "<b>não</b> x y z só"),
    ],
)  # fmt: skip
def test_tags_stand_around_the_words_that_were_translated(
    source: str, target: str, pairs: str, expected: str
) -> None:
    assert aligned(source, target, pairs) == expected


def test_more_elements_than_words_can_not_be_placed() -> None:
    assert aligned("<b>do</b> <i>not</i>", "não", "1") is None


def test_an_element_of_two_sentences_is_opened_in_one_and_closed_in_the_other() -> None:
    document = Document("Hi <b>big world. So</b> small.", MarkupOptions(syntax=Syntax.HTML))
    writer = Writer(document, "pt")
    for span, target, order in (
        (Span(0, 13), "Olá mundo grande.", (0, 2, 1, 3)),
        (Span(14, 23), "Tão pequeno.", (0, 1, 2)),
    ):
        tree = tree_of(document, span, nodes_within(document, span), units_of(document.plain, span))
        assert tree is not None
        weights = [[float(at == column) for column in range(len(order))] for at in order]
        placed = place(tree, weights, units_of(target, Span(0, len(target))))
        assert placed is not None
        writer.add(span, target, placed)
    writer.end()
    assert writer.text == "Olá <b>mundo grande. Tão</b> pequeno."


def test_too_many_tags_are_not_placed_one_by_one() -> None:
    document = Document("a " + "<b>x</b> " * 300 + "b", MarkupOptions(syntax=Syntax.HTML))
    span = whole(document)
    assert tree_of(document, span, nodes_within(document, span), []) is None
    deep = Document("a " + "<b>" * 99 + "x" + "</b>" * 99 + " b", MarkupOptions(syntax=Syntax.HTML))
    assert tree_of(deep, whole(deep), nodes_within(deep, whole(deep)), []) is None


def made_from(found: Aligned) -> list[int]:
    return [max(range(len(row)), key=row.__getitem__) if any(row) else -1 for row in found.weights]


def test_tokens_are_found_in_their_text_word_by_word() -> None:
    text = "Olá,  naïve ﬁsh"
    pieces = ["▁Ol", "á", ",", "▁na", "<0xC3>", "<0xAF>", "ve", "▁fish"]
    spans = [span.of(text) for span in spans_of(text, pieces)]
    assert spans == ["Ol", "á", ",", "na", "ï", "", "ve", "ﬁsh"]
    assert [span.of("ab cd") for span in spans_of("ab cd", ["x", "y"])] == ["ab", " cd"]


def test_what_was_masked_is_made_from_itself() -> None:
    plain = "See http://x.example/y now, Ana."
    kept = [Span(4, 22)]
    masked = mask(plain, Span(0, len(plain)), kept, MaskSet.placeholders(9))
    assert masked is not None
    decoded = Decoded(
        "Agora veja ⟨1⟩, Ana.",
        ["▁Agora", "▁veja", "▁", "⟨1⟩", ",", "▁Ana", "."],
        ["▁See", "▁", "⟨1⟩", "▁now", ",", "▁Ana", "."],
        np.array(
            [
                *([0, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]),
                *([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]),
                [1, 0, 0, 0, 0, 0, 0],
            ],
            np.float32,
        ),
    )
    translation = "Agora veja http://x.example/y, Ana."
    found = align(plain, Span(0, len(plain)), masked, decoded, translation)
    assert [span.of(plain) for span in found.source] == [
        *("See", "http://x.example/y", "now", ",", "Ana", "."),
    ]
    assert [span.of(translation) for span in found.target] == [
        *("Agora", "veja", "http://x.example/y", ",", "Ana", "."),
    ]
    # The comma is the source's, though the decoder looked at the full stop.
    assert made_from(found) == [2, 0, 1, -1, 4, -1]


def test_a_number_that_was_corrected_is_found_in_its_place() -> None:
    plain = "He has 3 cats."
    masked = mask(plain, Span(0, len(plain)), [])
    assert masked is not None
    pieces = ["▁Ele", "▁tem", "▁33", "▁gatos", "."]
    decoded = Decoded(
        "Ele tem 33 gatos.",
        pieces,
        ["▁He", "▁has", "▁3", "▁cats", "."],
        np.eye(5, dtype=np.float32),
    )
    found = align(plain, Span(0, len(plain)), masked, decoded, "Ele tem 3 gatos.")
    assert made_from(found) == [0, 1, 2, 3, 4]


def test_placed_tags_are_in_order() -> None:
    source = "<b>one</b> two <i>three<img></i>"
    document = Document(source, MarkupOptions(syntax=Syntax.HTML))
    span = whole(document)
    tree = tree_of(document, span, nodes_within(document, span), units_of(document.plain, span))
    assert tree is not None
    units = units_of("um dois três", Span(0, 12))
    placed = place(tree, [[1, 0, 0], [0, 1, 0], [0, 0, 1]], units)
    assert placed is not None
    assert [(each.place, each.tag.of(source)) for each in placed] == [
        *((0, "<b>"), (2, "</b>"), (8, "<i>"), (12, "<img>"), (12, "</i>")),
    ]
    assert all(isinstance(each, Placed) for each in placed)
