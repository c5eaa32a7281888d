"""Tokens of HTML and XML: nothing is lost, and what is broken is said where."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.markup.tokens import (
    Kind,
    MalformedError,
    Syntax,
    attributes_of,
    text_alone,
    tokens_of,
)
from support.marked_texts import HTML


def kinds(text: str, syntax: Syntax = Syntax.HTML) -> list[tuple[str, str]]:
    return [(each.kind.value, text[each.start : each.end]) for each in tokens_of(text, syntax)]


@given(HTML | st.text() | st.text(alphabet="<>/!-ab='\" &;?[]"))
def test_together_the_tokens_of_html_are_the_text(text: str) -> None:
    assert "".join(each for _, each in kinds(text)) == text


@given(HTML | st.text(alphabet="<>/!-ab='\" &;?[]"))
def test_together_the_tokens_of_xml_are_the_text_or_it_is_refused(text: str) -> None:
    try:
        found = kinds(text, Syntax.XML)
    except MalformedError:
        return
    assert "".join(each for _, each in found) == text


def test_tags_text_and_the_rest_of_html() -> None:
    assert kinds('<p class="a>b">1 < 2 &<br/><!-- <i> -->x</P ><script>a</b</script>') == [
        ("open", '<p class="a>b">'),
        ("text", "1 < 2 &"),
        ("empty", "<br/>"),
        ("other", "<!-- <i> -->"),
        ("text", "x"),
        ("close", "</P >"),
        ("open", "<script>"),
        ("other", "a</b"),
        ("close", "</script>"),
    ]


def test_a_title_has_text_but_no_tags() -> None:
    assert kinds("<title>a <b> c</title>")[1] == ("text", "a <b> c")


def test_attributes_with_and_without_quotes() -> None:
    text = """<a href='x' title="a > b" alt=z hidden data-x = "1">"""
    (token,) = tokens_of(text, Syntax.HTML)
    found = {each.name: text[each.start : each.end] for each in attributes_of(text, token)}
    assert found == {"href": "x", "title": "a > b", "alt": "z", "data-x": "1"}


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        ("a & b", "an & that begins no entity", "line 1, column 3"),
        ("a\nb <a", "a < that begins no tag", "line 2, column 3"),
        ("<a>\n</b>", "an end tag that closes nothing", "line 2, column 1"),
        ("x</a>", "an end tag that closes nothing", "line 1, column 2"),
        ("<a><b></a>", "an end tag that closes nothing", "line 1, column 7"),
        ("<a>\n <b>x</b>", "an element without its end tag", "line 1, column 1"),
        ('<a b="&c"/>', "an & that begins no entity", "line 1, column 7"),
        ("<a b=c/>", "a < that begins no tag", "line 1, column 1"),
        ("<!-- x", "a < that begins no tag", "line 1, column 1"),
    ],
)
def test_malformed_xml_is_refused_with_its_place(text: str, problem: str, place: str) -> None:
    with pytest.raises(MalformedError, match="is not well-formed") as raised:
        list(tokens_of(text, Syntax.XML))
    assert str(raised.value) == f"is not well-formed: {problem} at {place}"


@pytest.mark.parametrize(
    "text",
    [
        *("<a ", '<a ="', "<a ='>", "<!", "<!--", '<a="', "<![CDATA[>", "<title>", "<script>"),
        *("</3", "&", "&a", "<a/", "<x y", "<?", "</", "<a b=' c=\">"),
    ],
)
def test_reading_takes_time_in_proportion_to_the_text(text: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        for _ in tokens_of(text * count + ">", Syntax.HTML):
            pass
        return time.process_time() - began

    short = min(seconds(4_000) for _ in range(3))
    assert seconds(32_000) < 40 * short + 0.2


def test_names_of_html_are_in_small_letters_and_those_of_xml_are_not() -> None:
    assert [each.name for each in tokens_of("<B>x</b>", Syntax.HTML)] == ["b", "", "b"]
    assert [each.name for each in tokens_of("<Bx>x</Bx>", Syntax.XML)] == ["Bx", "", "Bx"]
    assert next(tokens_of("<x />", Syntax.XML)).kind is Kind.EMPTY


@pytest.mark.parametrize(
    ("text", "syntax", "alone"),
    [
        ("<p title='the'>a&ccedil;&atilde;o<script>the</script></p>b", Syntax.HTML, "ação b"),
        ("<a>x &lt; y<!-- z --></a>", Syntax.XML, "x < y"),
        ("<a>broken", Syntax.XML, "<a>broken"),
    ],
)
def test_what_people_read_is_found_alone(text: str, syntax: Syntax, alone: str) -> None:
    assert text_alone(text, syntax) == alone
