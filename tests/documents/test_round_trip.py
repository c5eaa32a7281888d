"""Every format: what goes in comes back, and translations come back in the right places."""

import re

import pytest

from dragoman_documents import FORMATS, Document, DocumentError, open_document
from support.documents import SAMPLES, unzipped

_WORDS = re.compile(r"(<[^>]*>|&\w+;)|(\w+)")


def same(document: Document) -> dict[str, str]:
    return {segment.id: segment.text for segment in document.segments}


def shouted(document: Document) -> dict[str, str]:
    """In capitals, but for tags: a translation that is easy to tell from its source."""
    return {
        segment.id: _WORDS.sub(lambda found: found[1] or found[2].upper(), segment.text)
        for segment in document.segments
    }


def texts(document: Document) -> list[tuple[str, str]]:
    return [(segment.text, segment.context) for segment in document.segments]


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == set(FORMATS)


ADDED = ("po", "xliff")
"""Formats in which translations stand beside their sources."""


@pytest.mark.parametrize("name", SAMPLES)
def test_unchanged_text_gives_the_same_bytes(name: str) -> None:
    document = open_document(SAMPLES[name], name)
    assert document.segments
    assert document.format == name
    assert document.write({}) == SAMPLES[name]
    if name not in ADDED:
        assert document.write(same(document)) == SAMPLES[name]


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ADDED])
def test_what_is_written_anew_says_the_same(name: str) -> None:
    document = open_document(SAMPLES[name], name)
    again = open_document(document.write(same(document), rewrite=True), name)
    assert texts(again) == texts(document)
    assert again.left == document.left


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ADDED])
def test_translations_stand_where_their_sources_were(name: str) -> None:
    document = open_document(SAMPLES[name], name)
    wanted = shouted(document)
    written = document.write(wanted)
    again = open_document(written, name)
    assert [segment.text for segment in again.segments] == list(wanted.values())
    assert again.write({}) == written
    # Back again, so nothing but the segments was changed.
    back = open_document(again.write(same(document)), name)
    assert texts(back) == texts(document)


@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name][:2] == b"PK"])
def test_other_members_are_copied_in_their_order(name: str) -> None:
    document = open_document(SAMPLES[name], name)
    before, after = unzipped(SAMPLES[name]), unzipped(document.write(shouted(document)))
    assert list(after) == list(before)
    changed = {each for each in before if before[each] != after[each]}
    assert changed == {
        each
        for each in before
        if any(segment.context.startswith(each) for segment in document.segments)
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_other_tags_are_refused(name: str) -> None:
    document = open_document(SAMPLES[name], name)
    for segment in document.segments:
        if segment.has_tags:
            for wrong in (segment.text + "<x1>", re.sub("<[^>]*>", "", segment.text), "<x9/>"):
                with pytest.raises(DocumentError, match="other tags"):
                    document.write({segment.id: wrong})
