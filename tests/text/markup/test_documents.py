"""Documents: what people read of a text, and the text written again around translations of it."""

from collections.abc import Callable

import pytest
from hypothesis import given

from dragoman_server.text.markup.document import Document
from dragoman_server.text.markup.outline import MarkupOptions
from dragoman_server.text.markup.tokens import Syntax
from dragoman_server.text.markup.writing import Writer
from dragoman_server.text.plan import Planner, PlanOptions
from dragoman_server.text.segments import Span
from support.marked_texts import HTML, INLINE_HTML
from support.vocabularies import VOCABULARIES

PLANNER = Planner(VOCABULARIES["en-pt"], "en", 255)
READ = MarkupOptions(syntax=Syntax.HTML, attributes=True)


def read(text: str, **options: object) -> Document:
    return Document(text, MarkupOptions(**{"syntax": Syntax.HTML, **options}))  # type: ignore[arg-type]


def lines(text: str, **options: object) -> list[str]:
    return [line for line in read(text, **options).plain.split("\n") if line.strip()]


def written(document: Document, translate: Callable[[str], str], language: str = "pt") -> str:
    """Return a document with its sentences translated, where none has tags within it."""
    writer = Writer(document, language)
    pieces = [
        writer.add(part.span, translate(part.span.of(document.plain)))
        for part in PLANNER.plan(document.plain, PlanOptions(), document.kept)
    ]
    pieces.append(writer.end())
    assert "".join(pieces) == writer.text
    for number, span in writer.spans.items():
        assert span.end <= len(writer.text), number
    return writer.text


@given(HTML)
def test_what_is_not_translated_comes_back_byte_for_byte(text: str) -> None:
    assert written(Document(text, READ), str, "") == text


@given(INLINE_HTML)
def test_so_it_does_from_xml(text: str) -> None:
    options = MarkupOptions(syntax=Syntax.XML)
    text = text.replace("<img>", "<img/>").replace("<wbr>", "<wbr/>")
    assert written(Document(text, options), str, "") == text


def test_blocks_are_lines_and_inline_elements_are_not() -> None:
    assert lines("<p>One <b>two</b>\n three<br>four<ul><li>five<li>six</ul>") == [
        "One two  three",
        "four",
        "five",
        "six",
    ]


def test_what_is_kept_is_one_letter_or_none() -> None:
    document = read('Use <code>f()</code> <span class="x notranslate">now</span> <pre>a\nb</pre>.')
    assert len(document.kept) == 2
    assert document.plain.startswith("Use ")
    assert "f()" not in document.plain
    assert "now" not in document.plain
    assert [document.source[a.start : a.end] for a in document.atoms.values()] == [
        "<code>f()</code>",
        '<span class="x notranslate">now</span>',
    ]
    assert read("a <i translate=no>b</i> <x>c</x>", ignore_tags=frozenset(("x",))).kept == [
        *(span for span in read("a <code>b</code> <code>c</code>").kept),
    ]


def test_notes_scripts_and_comments_are_no_part_of_the_sentence() -> None:
    text = "A house<sup>1</sup> <script>x</script>is<!-- not --> big<sup>nd</sup>."
    assert lines(text) == ["A house is bignd."]


def test_blocks_of_xml_are_where_no_text_stands_beside() -> None:
    text = "<doc><title>A title</title><par>Some <b>bold</b> <i>text</i></par></doc>"
    assert lines(text, syntax=Syntax.XML) == ["A title", "Some bold text"]
    assert lines("<x1>Hel</x1><x2>lo</x2>", syntax=Syntax.XML) == ["Hello"]
    assert lines("<r><x1>Hel</x1><x2>lo</x2></r>", syntax=Syntax.XML, outline=False) == ["Hello"]
    assert lines("a<s/>b", syntax=Syntax.XML, splitting_tags=frozenset("s")) == ["a", "b"]
    inline = frozenset(("title", "par"))
    assert lines(text, syntax=Syntax.XML, inline_tags=inline) == ["A titleSome bold text"]


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("<p>Hello</p>", "a < b & c > d", "<p>a &lt; b &amp; c &gt; d</p>"),
        ("Hello &eacute;", "é à", "&eacute; à"),
        ("Hello &eacute; é", "é", "é"),
        ("Hello &amp; > x", "& >", "&amp; >"),
        ("caf&#233; x", "é", "&#233;"),
        ("a &foo; b", "&foo;", "&amp;foo;"),
    ],
)
def test_letters_are_spelt_as_in_the_source(source: str, translation: str, expected: str) -> None:
    assert written(read(source), lambda _: translation) == expected


def test_attributes_are_translated_within_their_quotes() -> None:
    text = """<p><img alt="A dog. A cat." title=Home> <a title='x y' href="z">Hi</a></p>"""
    found = written(Document(text, READ), lambda part: f"{part.upper()}'\"")
    assert found == (
        """<p><img alt="A DOG.'&#34; A CAT.'&#34;" title="HOME'&#34;"> """
        """<a title='X Y&#39;"' href="z">HI'"</a></p>"""
    )


def test_entities_that_only_the_type_explains_are_kept() -> None:
    document = read("Dear &company; &nbsp;of &lt;", syntax=Syntax.XML)
    assert len(document.kept) == 1
    atom = document.plain[document.kept[0].start]
    assert written(document, lambda _: f"{atom} <é") == "&company; &lt;é"


def test_tags_within_a_term_are_written_after_what_stands_for_it() -> None:
    text = "<p>A <b>red</b> <i title='A dog'>car</i>, 12.</p>"
    document = Document(text, READ)
    start = document.plain.index("red")
    writer = Writer(document, "pt", {Span(start, start + 7): "x & y"})
    writer.add(Span(0, 5), "Um cão")
    writer.end()
    assert writer.text == "<p>A <b>x &amp; y</b><i title='Um cão'></i>, 12.</p>"


def test_spaces_between_sentences_go_where_the_language_has_none() -> None:
    assert written(read("<p>Yes. <b>No.</b></p>"), lambda _: "好。", "zh") == (
        "<p>好。<b>好。</b></p>"
    )
