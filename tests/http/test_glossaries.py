"""Glossaries over our own JSON API: those of the wire."""

from google.protobuf import json_format

from dragoman.v1 import translation_pb2 as pb
from support.http_client import call, get, post
from support.service_running import PATIENCE, Running

from .conftest import KEY, OTHER

GLOSSARY = {
    "name": "cars",
    "source_language": "en",
    "target_language": "pt",
    "entries": [{"source": "red car", "target": "viatura encarnada"}],
}


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_a_glossary_is_kept_listed_used_and_removed(running: Running) -> None:
    made = post(running, "/v1/glossaries", {"glossary": GLOSSARY})
    assert made.status == 200
    described = made.json["glossary"]
    assert (described["name"], described["entry_count"], described["entries"]) == ("cars", 1, [])
    assert get(running, "/v1/glossaries").json == {"glossaries": [described]}
    asked = pb.GetGlossaryRequest(name="cars")
    expected = running.stub.GetGlossary(asked, timeout=PATIENCE)
    whole = get(running, "/v1/glossaries/cars").json
    assert json_format.ParseDict(whole, pb.GetGlossaryResponse()) == expected
    assert whole["glossary"]["entries"] == GLOSSARY["entries"]
    value = {"texts": ["I have a red car."], "options": {"glossary_name": "cars"}}
    (found,) = post(running, "/v1/translate", value).json["translations"]
    assert "viatura encarnada" in found["text"]
    removed = call(running, "DELETE", "/v1/glossaries/cars")
    assert (removed.status, removed.json) == (200, {})
    for reply in (
        get(running, "/v1/glossaries/cars"),
        call(running, "DELETE", "/v1/glossaries/cars"),
        post(running, "/v1/translate", value),
    ):
        assert (reply.status, reply.error["reason"]) == (404, "UNKNOWN_GLOSSARY")


def test_what_can_not_be_kept_is_refused_by_field(running: Running) -> None:
    for changed, field in (
        ({"name": "../cars"}, "glossary.name"),
        ({"entries": []}, "glossary.entries"),
        ({"entries": [{"source": 1}]}, "glossary.entries[0].source"),
        ({"target_language": "?"}, "glossary.target_language"),
    ):
        reply = post(running, "/v1/glossaries", {"glossary": {**GLOSSARY, **changed}})
        assert (reply.status, reply.error["field"]) == (400, field)
    assert get(running, "/v1/glossaries").json == {"glossaries": []}


def test_each_key_has_its_own(keyed: Running) -> None:
    assert post(keyed, "/v1/glossaries", {"glossary": GLOSSARY}, **bearer(KEY)).status == 200
    assert get(keyed, "/v1/glossaries/cars", **bearer(KEY)).status == 200
    assert get(keyed, "/v1/glossaries/cars", **bearer(OTHER)).status == 404
    assert get(keyed, "/v1/glossaries", **bearer(OTHER)).json == {"glossaries": []}
    assert get(keyed, "/v1/glossaries").status == 401
    assert call(keyed, "DELETE", "/v1/glossaries/cars", headers=bearer(KEY)).status == 200


def test_a_server_without_a_directory_says_so(both_ways: Running) -> None:
    for reply in (
        get(both_ways, "/v1/glossaries"),
        post(both_ways, "/v1/glossaries", {"glossary": GLOSSARY}),
    ):
        assert (reply.status, reply.error["reason"]) == (404, "NO_GLOSSARIES")
        assert "--glossaries" in reply.error["message"]
