"""LibreTranslate's API, by its own client and by hand: each shape, status and message."""

import urllib.error
from typing import Any

import pytest
from libretranslatepy import LibreTranslateAPI

from support.http_client import JSON, address_of, call, get, post, post_form
from support.service_running import PATIENCE, Running

from .conftest import KEY, LIMITED

TEXT = "The cat sits on the mat. It rains."


def client(running: Running, key: str | None = None) -> LibreTranslateAPI:
    return LibreTranslateAPI(f"http://{address_of(running)}/", api_key=key)


def translate(running: Running, **fields: Any) -> Any:
    given = {"q": TEXT, "source": "en", "target": "pt", **fields}
    return post(running, "/translate", given)


def test_its_client_translates(running: Running) -> None:
    (expected,) = running.translate(TEXT)
    libre = client(running)
    assert libre.translate(TEXT, "en", "pt", timeout=PATIENCE) == expected.text
    assert libre.translate(TEXT, "auto", "pt", timeout=PATIENCE) == expected.text


def test_its_client_detects_and_lists(both_ways: Running) -> None:
    libre = client(both_ways)
    (best, *_) = libre.detect("Onde fica a estação de comboios?", timeout=PATIENCE)
    assert best["language"] == "pt"
    assert 50 < best["confidence"] <= 100
    assert libre.languages(timeout=PATIENCE) == [
        {"code": "en", "name": "English", "targets": ["pt"]},
        {"code": "pt", "name": "Portuguese", "targets": ["en"]},
    ]


def test_its_client_is_told_what_is_wrong(running: Running) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised, raised_response(raised):
        client(running).translate(TEXT, "en", "zz", timeout=PATIENCE)
    assert raised.value.code == 400


class raised_response:  # noqa: N801 - used as a function
    """Closes the response that an error of urllib holds."""

    def __init__(self, raised: Any) -> None:
        self._raised = raised

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: Any, trace: object) -> None:
        if isinstance(error, urllib.error.HTTPError):
            error.close()


def test_its_client_gives_its_key(keyed: Running) -> None:
    assert client(keyed, KEY).translate("Hello.", "en", "pt", timeout=PATIENCE)
    assert client(keyed, KEY).languages(timeout=PATIENCE)
    with pytest.raises(urllib.error.HTTPError) as raised, raised_response(raised):
        client(keyed, "wrong").translate("Hello.", "en", "pt", timeout=PATIENCE)
    assert raised.value.code == 403


def test_shapes(running: Running) -> None:
    one = translate(running).json
    assert one.keys() == {"translatedText"}
    auto = translate(running, source="auto").json
    assert auto["translatedText"] == one["translatedText"]
    assert auto["detectedLanguage"]["language"] == "en"
    assert 50 < auto["detectedLanguage"]["confidence"] <= 100
    more = translate(running, alternatives=2).json
    assert len(more["alternatives"]) == 2
    assert more["translatedText"] not in more["alternatives"]
    many = translate(running, q=[TEXT, "Hello."], source="auto", alternatives=1).json
    assert many["translatedText"][0] == translate(running, alternatives=1).json["translatedText"]
    assert [each["language"] for each in many["detectedLanguage"]] == ["en", "en"]
    assert [len(each) for each in many["alternatives"]] == [1, 1]
    assert translate(running, q=[]).json == {"translatedText": []}
    assert translate(running, q="").json == {"translatedText": ""}


def test_each_text_of_a_batch_is_detected(both_ways: Running) -> None:
    english, portuguese = "Where is the train station?", "Onde fica a estação de comboios?"
    found = translate(both_ways, q=[portuguese, "123"], source="auto", target="en").json
    assert [each["language"] for each in found["detectedLanguage"]] == ["pt", "pt"]
    assert found["detectedLanguage"][0]["confidence"] > 90
    assert found["detectedLanguage"][1]["confidence"] == 0
    wrong = translate(both_ways, q=[portuguese, english], source="auto", target="en")
    assert wrong.status == 400
    assert "texts[1] seems to be in en" in wrong.json["error"]


@pytest.mark.parametrize("form", ["json", "form", "multipart", "query"])
def test_parameters_come_in_any_form(running: Running, form: str) -> None:
    fields = {"q": TEXT, "source": "en", "target": "pt"}
    expected = translate(running).json
    if form == "json":
        found = post(running, "/translate", fields)
    elif form == "form":
        found = post_form(running, "/translate", fields)
    elif form == "multipart":
        parts = "".join(
            f'--x\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        kind = {"content-type": "multipart/form-data; boundary=x"}
        found = call(running, "POST", "/translate", f"{parts}--x--\r\n", kind)
    else:
        query = f"q={TEXT.replace(' ', '+')}&source=en&target=pt"
        found = call(running, "POST", f"/translate?{query}")
    assert found.json == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "zz"}, "zz is not supported"),
        ({"target": "zz"}, "zz is not supported"),
        ({"target": "<b>"}, "the language is not supported"),
        ({"format": "xml"}, "xml format is not supported"),
        (
            {"source": "pt", "target": "pt"},
            "Portuguese (pt) is not available as a target language from Portuguese (pt)",
        ),
        ({"alternatives": "x"}, "alternatives must be a whole number"),
        ({"alternatives": -1}, "alternatives must be a whole number"),
        ({"q": 1}, "q must be a text"),
        ({"q": ["a", 1]}, "q must be a text, or a list of texts"),
        ({"q": "\ud800"}, "q is not valid UTF-8"),
    ],
)
def test_what_is_wrong_is_said_in_its_words(
    both_ways: Running, fields: dict[str, Any], message: str
) -> None:
    reply = translate(both_ways, **fields)
    assert (reply.status, reply.json) == (400, {"error": message})


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b'"q"', "application/json", 400),
        (b'{"q": "\xff"}', "application/json", 400),
        (b"q=%FF&source=en&target=pt", "application/x-www-form-urlencoded", 400),
        (b"q=\xff&source=en&target=pt", "application/x-www-form-urlencoded", 400),
        (b"&".join([b"q=a"] * 5000), "application/x-www-form-urlencoded", 400),
        (b"--x\r\nnonsense", "multipart/form-data; boundary=x", 400),
        (b"--x--", "multipart/form-data", 400),
        (b"q=a", "text/plain", 415),
    ],
)
def test_bodies_that_can_not_be_read(running: Running, body: bytes, kind: str, status: int) -> None:
    reply = call(running, "POST", "/translate", body, {"content-type": kind})
    assert reply.status == status, reply.body
    assert reply.json.keys() == {"error"}


def test_languages_may_be_written_as_it_does(running: Running) -> None:
    for target in ("pt", "PT", "pb", "pt-BR"):
        assert translate(running, target=target).status == 200


@pytest.mark.parametrize("place", ["body", "form", "query", "header"])
def test_keys_come_in_any_place(keyed: Running, place: str) -> None:
    fields = {"q": "Hello.", "source": "en", "target": "pt"}

    def ask(key: str) -> Any:
        if place == "body":
            return post(keyed, "/translate", {**fields, "api_key": key})
        if place == "form":
            return post_form(keyed, "/translate", {**fields, "api_key": key})
        if place == "query":
            return post(keyed, f"/translate?api_key={key}", fields)
        return post(keyed, "/translate", fields, authorization=f"Bearer {key}")

    assert ask(KEY).status == 200
    wrong = ask("wrong")
    assert (wrong.status, wrong.json) == (403, {"error": "Invalid API key"})
    assert ask(LIMITED).status == 403
    missing = post(keyed, "/translate", fields)
    assert missing.status == 400
    assert missing.json == {"error": "Please contact the server operator to get an API key"}


def test_html_keeps_its_markup(running: Running) -> None:
    source = (
        '<!doctype html><!-- The cat --><p class="a > b">Good morning.<br/>\n'
        "<script>if (a < b) { cat() }</script><code>the cat</code> "
        '<span translate="no">The <b>cat</b></span></p>\n&lt;cat&gt; &amp; dog'
    )
    found = translate(running, q=source, format="html").json["translatedText"]
    translated = translate(running, q="Good morning.").json["translatedText"]
    assert found.startswith(
        f'<!doctype html><!-- The cat --><p class="a > b">{translated}<br/>\n'
        "<script>if (a < b) { cat() }</script><code>the cat</code> "
        '<span translate="no">The <b>cat</b></span></p>\n'
    )
    assert "&lt;" in found
    assert "&amp;" in found or "e " in found
    assert "<cat>" not in found
    auto = translate(running, q=[source, ""], format="html", source="auto", alternatives=1).json
    assert [each["language"] for each in auto["detectedLanguage"]] == ["en", "en"]
    assert auto["translatedText"][1] == ""


def test_other_endpoints(running: Running, keyed: Running) -> None:
    settings = get(running, "/frontend/settings").json
    assert settings["keyRequired"] is settings["apiKeys"] is False
    assert settings["language"]["target"] == {"code": "pt", "name": "Portuguese"}
    assert get(keyed, "/frontend/settings").json["keyRequired"] is True
    assert get(running, "/spec").status == 307
    for path, message in (
        ("/suggest", "Suggestions are disabled on this server."),
        ("/translate_file", "Files translation are disabled on this server."),
    ):
        reply = post(running, path, {})
        assert (reply.status, reply.json) == (403, {"error": message})
    assert call(running, "POST", "/detect", b"{}", JSON).json == {
        "error": "Invalid request: missing q parameter"
    }
