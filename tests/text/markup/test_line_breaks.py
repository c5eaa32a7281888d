"""Line breaks that end no sentence become spaces, and all others stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.markup.line_breaks import has_inner_breaks, without_inner_breaks
from dragoman_server.text.markup.outline import MarkupOptions
from dragoman_server.text.markup.tokens import MalformedError, Syntax

XML = MarkupOptions(syntax=Syntax.XML, ignore_tags=frozenset("x"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>b\nc</a>", "<a>b c</a>"),
        ("<a>\nb\n</a>", "<a>\nb\n</a>"),
        ("<d>\n<a>b</a>\n<a>c\n</a>\n</d>", "<d>\n<a>b</a>\n<a>c\n</a>\n</d>"),
        ("<d>b\n<i>c\n</i>d\n</d>", "<d>b <i>c </i>d\n</d>"),
        ("<d>b\n<x>c\nd</x>\ne</d>", "<d>b <x>c\nd</x> e</d>"),
        ("b\r\n<!--\n-->c\u2028d\n", "b  <!--\n-->c d\n"),
        ("\n", "\n"),
        ("", ""),
    ],
)
def test_breaks_within_a_run_are_spaces(text: str, expected: str) -> None:
    assert without_inner_breaks(text, XML) == expected


@given(st.text(alphabet="ab\n <>/x"))
def test_only_breaks_are_changed(text: str) -> None:
    try:
        found = without_inner_breaks(text, XML)
    except MalformedError:
        return
    assert [a for a, b in zip(text, found, strict=True) if a != b] == ["\n"] * (
        text.count("\n") - found.count("\n")
    )


def test_breaks_at_the_ends_are_not_inner() -> None:
    assert has_inner_breaks("a\nb")
    assert not has_inner_breaks("\n a \n\n")
    assert not has_inner_breaks("")
