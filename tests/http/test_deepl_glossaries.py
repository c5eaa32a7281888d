"""Glossaries by DeepL's own client, as it is, and by hand."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import deepl
import pytest

from dragoman_client import Client
from support.deepl_client import deepl_client
from support.http_client import call, get, post, post_form
from support.service_running import Running

from .conftest import KEY, OTHER

TERMS = {"red car": "viatura encarnada", "Dragoman": "Dragoman", "l'eau": 'água "fria"'}
VALUE = {
    "name": "cars",
    "source_lang": "en",
    "target_lang": "pt",
    "entries": "red car\tviatura encarnada",
    "entries_format": "tsv",
}


@pytest.fixture
def alice(keyed: Running) -> Iterator[deepl.DeepLClient]:
    with deepl_client(keyed, KEY) as client:
        yield client
        for glossary in client.list_glossaries():
            client.delete_glossary(glossary)


def test_its_client_makes_uses_lists_reads_and_deletes_one(alice: deepl.DeepLClient) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    made = alice.create_glossary("Our cars, 2026!", "EN", "PT-BR", TERMS)
    assert (made.name, made.entry_count, made.ready) == ("Our cars, 2026!", len(TERMS), True)
    assert (made.source_lang, made.target_lang) == ("EN", "PT")
    assert before <= made.creation_time <= datetime.now(UTC)
    (listed,) = alice.list_glossaries()
    assert vars(listed) == vars(made) == vars(alice.get_glossary(made.glossary_id))
    assert alice.get_glossary_entries(made) == TERMS
    text = "I have a red car."
    for glossary in (made, made.glossary_id):
        found = alice.translate_text(text, source_lang="EN", target_lang="PT-BR", glossary=glossary)
        assert isinstance(found, deepl.TextResult)
        assert "viatura encarnada" in found.text
    marked = alice.translate_text_with_glossary(
        "<p>I have a <b>red car</b>.</p>", made, "PT-PT", tag_handling="xml"
    )
    assert isinstance(marked, deepl.TextResult)
    assert "<b>viatura encarnada</b>" in marked.text
    alice.delete_glossary(made)
    assert alice.list_glossaries() == []
    for ask in (alice.get_glossary, alice.get_glossary_entries, alice.delete_glossary):
        with pytest.raises(deepl.GlossaryNotFoundException):
            ask(made.glossary_id)
    with pytest.raises(deepl.DeepLException) as raised:
        alice.translate_text(text, source_lang="EN", target_lang="PT-BR", glossary=made)
    assert raised.value.http_status_code == 404


def test_its_client_sends_csv(alice: deepl.DeepLClient) -> None:
    rows = '\ufeffred car,viatura encarnada\n"a, b","c ""d"""\n\nx,y,EN,PT\n'
    made = alice.create_glossary_from_csv("cars", "EN", "PT", rows)
    expected = {"red car": "viatura encarnada", "a, b": 'c "d"', "x": "y"}
    assert alice.get_glossary_entries(made) == expected


def test_several_may_have_one_name(alice: deepl.DeepLClient) -> None:
    one, other = (alice.create_glossary("cars", "EN", "PT", TERMS) for _ in range(2))
    assert one.glossary_id != other.glossary_id
    assert [each.name for each in alice.list_glossaries()] == ["cars", "cars"]


def test_its_client_lists_the_languages(alice: deepl.DeepLClient) -> None:
    (pair,) = alice.get_glossary_languages()
    assert (pair.source_lang, pair.target_lang) == ("en", "pt")


def test_each_key_has_its_own(keyed: Running, alice: deepl.DeepLClient) -> None:
    made = alice.create_glossary("cars", "EN", "PT", TERMS)
    with deepl_client(keyed, OTHER) as carol:
        assert carol.list_glossaries() == []
        for ask in (carol.get_glossary, carol.get_glossary_entries, carol.delete_glossary):
            with pytest.raises(deepl.GlossaryNotFoundException):
                ask(made.glossary_id)
        with pytest.raises(deepl.DeepLException, match="no glossary"):
            carol.translate_text(
                "A car.", source_lang="EN", target_lang="PT-BR", glossary=made.glossary_id
            )
    with deepl_client(keyed, "wrong") as stranger, pytest.raises(deepl.AuthorizationException):
        stranger.list_glossaries()
    assert alice.get_glossary(made.glossary_id).entry_count == len(TERMS)


def test_those_of_our_own_api_are_there_too(keyed: Running, alice: deepl.DeepLClient) -> None:
    with Client(keyed.server.address, key=KEY) as ours:
        ours.create_glossary(
            "pets", {"dog": "cachorrinho", "Rex": ""}, source_language="en", target_language="pt-BR"
        )
        ours.create_glossary("any", {"dog": "cachorrinho"})
        (found,) = alice.list_glossaries()
        assert (found.glossary_id, found.name, found.target_lang) == ("pets", "pets", "PT")
        assert alice.get_glossary_entries("pets") == {"dog": "cachorrinho", "Rex": "Rex"}
        with pytest.raises(deepl.GlossaryNotFoundException):
            alice.get_glossary("any")  # it is for any language, which DeepL's never are
        made = alice.create_glossary("Our cars", "EN", "PT", TERMS)
        assert ours.glossary(made.glossary_id).entries == TERMS
        ours.delete_glossary("any")


def test_a_server_without_a_directory_says_so(both_ways: Running) -> None:
    with deepl_client(both_ways) as translator:
        for ask in (
            translator.list_glossaries,
            lambda: translator.create_glossary("a", "EN", "PT", TERMS),
            lambda: translator.translate_text(
                "A car.", source_lang="EN", target_lang="PT-BR", glossary="a"
            ),
        ):
            with pytest.raises(deepl.DeepLException, match="the server keeps no glossaries") as r:
                ask()
            assert r.value.http_status_code == 400
        pairs = translator.get_glossary_languages()
    assert [(each.source_lang, each.target_lang) for each in pairs] == [("en", "pt"), ("pt", "en")]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": " "}, "name must have 1 to 1024 letters"),
        ({"name": 1}, "name must be a text"),
        ({"source_lang": None}, "Value for 'source_lang' not supported."),
        ({"target_lang": "?"}, "Value for 'target_lang' not supported."),
        ({"target_lang": "de"}, "Unsupported glossary source and target pair."),
        ({"entries_format": None}, "entries_format must be tsv or csv"),
        ({"entries_format": "json"}, "entries_format must be tsv or csv"),
        ({"entries": ""}, "entries is empty: there must be at least one"),
        ({"entries": "a\tb\ncar"}, "entries must have a term, a tab and a translation in line 2"),
        ({"entries": "car\t"}, "entries must have a term, a tab and a translation in line 1"),
        ({"entries": "a\tb\tc"}, "entries must have a term, a tab and a translation in line 1"),
        ({"entries": "a\tb\x07"}, "entries has a control character in line 1"),
        ({"entries": "a\tb\nA\tc"}, "entries[1].source is there already, as entry 0"),
        ({"entries": "1\t2"}, "entries[0].source has no word"),
        (
            {"entries": "a,b\na,b,c\n", "entries_format": "csv"},
            "entries must have a term, a comma and a translation in line 2",
        ),
        ({"entries": 'a,"b\n', "entries_format": "csv"}, "entries is not CSV from line 1 on"),
    ],
)
def test_what_can_not_be_kept_is_refused(
    running: Running, changed: dict[str, Any], message: str
) -> None:
    reply = post(running, "/v2/glossaries", {**VALUE, **changed})
    assert (reply.status, reply.json) == (400, {"message": message})


def test_statuses_and_types(running: Running) -> None:
    made = post_form(running, "/v2/glossaries", VALUE)
    assert made.status == 201
    path = f"/v2/glossaries/{made.json['glossary_id']}"
    assert get(running, path).json == made.json
    entries = get(running, f"{path}/entries")
    assert entries.headers["content-type"].startswith("text/tab-separated-values")
    assert entries.body == b"red car\tviatura encarnada"
    fields = {"text": "A red car.", "target_lang": "PT", "glossary_id": made.json["glossary_id"]}
    without = post(running, "/v2/translate", fields)
    assert (without.status, without.json) == (400, {"message": "glossary_id needs source_lang"})
    assert post(running, "/v2/translate", {**fields, "source_lang": "EN"}).status == 200
    deleted = call(running, "DELETE", path)
    assert (deleted.status, deleted.body) == (204, b"")
    for reply in (call(running, "DELETE", path), get(running, path), get(running, f"{path}/x")):
        assert reply.status == 404
    assert call(running, "DELETE", "/v2/glossaries").status == 405


def test_a_glossary_of_other_languages_is_refused(running: Running) -> None:
    with Client(running.server.address) as ours:
        ours.create_glossary("german", {"dog": "Hund"}, source_language="en", target_language="de")
        value = {
            "text": "A dog.",
            "source_lang": "EN",
            "target_lang": "PT",
            "glossary_id": "german",
        }
        reply = post(running, "/v2/translate", value)
        ours.delete_glossary("german")
    assert (reply.status, reply.json) == (400, {"message": "glossary_id is for other languages"})
