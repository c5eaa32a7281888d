"""HTML taken apart into markup and runs of text, and put together again."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.http_api.html_text import HtmlText


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("Hello", ["Hello"]),
        ("", []),
        (" \n ", []),
        ("<p>Hello <b>world</b></p>", ["Hello ", "world"]),
        ("<!-- a > b --><p>x</p>", ["x"]),
        ("<!doctype html><?xml a?><![CDATA[ <b> ]]>x", ["x"]),
        ("<a title=\"a > b\" href='<'>x</a>", ["x"]),
        ("<script>a < b; '</b>'</script>x", ["x"]),
        ("<SCRIPT>a</Script>x", ["x"]),
        ("<style>p > a {}", []),
        ("<code>a <b>b</b> c</code>x<kbd>y</kbd>", ["x"]),
        ('<p translate="no">a <i>b</i></p>x', ["x"]),
        ('<p class="big notranslate">a</p>x<p class="notranslated">y</p>', ["x", "y"]),
        ("<code>a<br>b</code>x", ["x"]),
        ("</code>x", ["x"]),
        ("a &lt; b &amp;&nbsp;c &eacute;", ["a < b &\xa0c é"]),
        ("1 < 2 and 3 > 2", ["1 < 2 and 3 > 2"]),
        ("a <p", ["a "]),
        ("a <p title='b>c", ["a "]),
        ("a <!-- b", ["a "]),
    ],
)
def test_texts_are_found(source: str, texts: list[str]) -> None:
    assert HtmlText(source).texts == texts


def test_translations_take_their_places() -> None:
    found = HtmlText('<p class="a&amp;b">One <b>two</b> &amp; three</p>\n<script>four</script>')
    assert found.with_translations(["1 ", "<2>", " & 3"]) == (
        '<p class="a&amp;b">1 <b>&lt;2&gt;</b> &amp; 3</p>\n<script>four</script>'
    )


@given(st.text(alphabet="<>/!-ab &;\"'=p", max_size=60))
def test_whatever_it_is_nothing_is_lost(source: str) -> None:
    """With each text in its own place, it is the source but for how characters are escaped."""
    found = HtmlText(source)
    whole = found.with_translations(found.texts)
    assert html.unescape(whole) == html.unescape(source)


@pytest.mark.parametrize(
    "broken",
    ["<a ", "<!--", "<![CDATA[", "<script>", "<style></sty", "<b x='", "<b x='\"", "<code>"],
)
def test_broken_markup_is_read_once(broken: str) -> None:
    """Much of it: what looked at it again and again would not end."""
    source = broken * (2**18 // len(broken)) + "</x>" * 50_000
    found = HtmlText(source)
    assert found.with_translations(found.texts)
