"""Glossaries that the server keeps: each client's own, and still there after a restart."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_client import AsyncClient, Client, InvalidRequestError, NotFoundError, Options
from dragoman_server.errors import ServerError
from dragoman_server.service.glossaries.store import GlossaryStore, StoredGlossary
from dragoman_server.service.settings import Limits
from support.service_running import Running, few_rows, refusal, serving, settings_for

ANA, EVA = "ana-has-this-key-here", "eva-has-this-key-here"
TERMS = {"dog": "cachorrinho", "My Company": ""}


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("kept")
    (path / "keys").write_text(f"ana {ANA}\neva {EVA}\n")
    settings = settings_for(
        engine=few_rows(4, max_beam=4),
        keys=path / "keys",
        glossaries=path / "glossaries",
        limits=Limits(max_glossaries=3, max_stored_entries=50),
    )
    with serving(settings) as running:
        yield running


@pytest.fixture
def ana(keeping: Running) -> Iterator[Client]:
    with Client(keeping.server.address, key=ANA) as client:
        yield client
        for glossary in client.glossaries():
            client.delete_glossary(glossary.name)


def test_a_glossary_is_kept_listed_used_and_removed(ana: Client) -> None:
    made = ana.create_glossary("pets", TERMS, source_language="en", target_language="pt-BR")
    assert (made.name, made.entry_count, made.entries) == ("pets", 2, {})
    assert made.created > 1_700_000_000
    assert ana.glossaries() == [made]
    assert ana.glossary("pets").entries == TERMS
    how = Options(glossary_name="pets")
    assert "cachorrinho" in ana.translate("I have a dog.", options=how).text
    both = Options(glossary_name="pets", glossary={"dog": "totó"})
    found = ana.translate("I have a dog at My Company.", options=both).text
    assert "totó" in found
    assert "My Company" in found
    ana.delete_glossary("pets")
    assert ana.glossaries() == []
    with pytest.raises(NotFoundError) as raised:
        ana.translate("I have a dog.", options=how)
    assert raised.value.reason == "UNKNOWN_GLOSSARY"


def test_each_client_has_its_own(keeping: Running, ana: Client) -> None:
    ana.create_glossary("pets", TERMS)

    async def as_eva() -> None:
        async with AsyncClient(keeping.server.address, key=EVA) as eva:
            assert await eva.glossaries() == []
            with pytest.raises(NotFoundError):
                await eva.glossary("pets")
            with pytest.raises(NotFoundError):
                await eva.delete_glossary("pets")
            await eva.create_glossary("pets", {"dog": "cadela"})
            assert (await eva.glossary("pets")).entries == {"dog": "cadela"}
            await eva.delete_glossary("pets")

    asyncio.run(as_eva())
    assert ana.glossary("pets").entries == TERMS


@pytest.mark.parametrize(
    ("name", "entries", "field"),
    [
        ("../pets", TERMS, "glossary.name"),
        ("", TERMS, "glossary.name"),
        (".pets", TERMS, "glossary.name"),
        ("a" * 65, TERMS, "glossary.name"),
        ("pets", {}, "glossary.entries"),
        ("pets", {"12": "x"}, "glossary.entries[0].source"),
        ("pets", {"dog": "x", "Dog": "y"}, "glossary.entries[1].source"),
        ("pets", {f"a{n}b": "" for n in range(51)}, "glossary.entries"),
    ],
)
def test_what_can_not_be_kept_is_refused(
    ana: Client, name: str, entries: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        ana.create_glossary(name, entries)
    assert raised.value.field == field
    assert ana.glossaries() == []


def test_names_and_their_number_are_bounded(ana: Client) -> None:
    for name in "abc":
        ana.create_glossary(name, TERMS)
    with pytest.raises(InvalidRequestError) as raised:
        ana.create_glossary("a", TERMS)
    assert raised.value.reason == "NAME_TAKEN"
    with pytest.raises(InvalidRequestError) as raised:
        ana.create_glossary("d", TERMS)
    assert raised.value.reason == "TOO_MANY_GLOSSARIES"


def test_a_glossary_for_other_languages_is_refused(ana: Client) -> None:
    ana.create_glossary("german", TERMS, target_language="de")
    with pytest.raises(InvalidRequestError) as raised:
        ana.translate("A dog.", options=Options(glossary_name="german"))
    assert raised.value.field == "options.glossary_name"


def test_a_server_without_a_directory_keeps_none(running: Running) -> None:
    refused = refusal(lambda: running.stub.ListGlossaries(pb.ListGlossariesRequest()))
    assert (refused.code, refused.reason) == (grpc.StatusCode.NOT_FOUND, "NO_GLOSSARIES")


def stored(name: str = "pets") -> StoredGlossary:
    return StoredGlossary(name, "en", "pt", [("dog", "cão"), ("Apple", "")], 1_700_000_000)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    GlossaryStore(tmp_path / "here").add("ana", stored())
    again = GlossaryStore(tmp_path / "here")
    assert again.find("ana", "pets") == stored()
    assert again.find("eva", "pets") is None
    again.remove("ana", "pets")
    assert GlossaryStore(tmp_path / "here").all_of("ana") == []


@pytest.mark.parametrize(
    "damage",
    [
        '{"name": "bad"',
        "[]",
        (
            '{"name": "bad", "source_language": "", "target_language": "", "created": 1, '
            '"entries": [["a", "b"], ["a", "c"]]}'
        ),
    ],
)
def test_a_file_that_is_damaged_is_left_out_and_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    store = GlossaryStore(tmp_path)
    store.add("ana", stored("good"))
    store.add("ana", stored("bad"))
    (path,) = tmp_path.glob("*/bad.json")
    path.write_text(damage)
    again = GlossaryStore(tmp_path)
    assert [each.name for each in again.all_of("ana")] == ["good"]
    assert path.exists()
    assert "bad.json" in caplog.text


def test_nothing_is_left_of_what_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = GlossaryStore(tmp_path)

    def fail(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        store.add("ana", stored())
    assert store.find("ana", "pets") is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_directory_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="no use for glossaries"):
        GlossaryStore(tmp_path / "file")
