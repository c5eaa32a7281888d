"""LibreTranslate's API, by its own client and by hand: each shape, status and message."""

import re
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


HTML = (
    '<!doctype html><!-- The  cat --><p class="a > b">'
    "The <b>red</b> car is <i>very</i> fast.<br/>\n"
    "<script>if (a < b) { cat() }</script>\t<code>the cat</code></p>\n\n"
    '<div translate="no">The <b>cat</b></div>  '
    "<p>My dog likes &lt;b&gt; &amp; &quot;tea&quot;.</p>\n"
)
TAG = re.compile(r"<!--.*?-->|<[!/a-z][^>]*>")


def test_html_is_translated_in_whole_sentences(running: Running) -> None:
    plain = translate(running, q="The red car is very fast.").json["translatedText"]
    found = translate(running, q=HTML, format="html").json["translatedText"]
    first, _, rest = found.partition("<br/>")
    start = '<!doctype html><!-- The  cat --><p class="a > b">'
    assert first.startswith(start)
    assert TAG.sub("", first.removeprefix(start)) == plain
    assert re.search(r"<b>vermelh\w+</b>.*<i>muito</i>", first)
    assert rest.startswith(
        "\n<script>if (a < b) { cat() }</script>\t<code>the cat</code></p>\n\n"
        '<div translate="no">The <b>cat</b></div>  <p>'
    )
    assert rest.endswith("</p>\n")
    last = rest.rpartition("<p>")[2]
    assert "&lt;b&gt;" in last
    assert last.count("&quot;") == 2
    assert "<b>" not in last


def test_html_has_alternatives_with_all_of_its_markup(running: Running) -> None:
    found = translate(running, q=HTML, format="html", alternatives=3).json
    texts = [found["translatedText"], *found["alternatives"]]
    assert len(set(texts)) == len(texts) > 2
    for text in texts:
        assert sorted(TAG.findall(text)) == sorted(TAG.findall(HTML))
        assert "&lt;b&gt;" in text


def test_html_that_is_broken_or_empty_is_never_refused(running: Running) -> None:
    sources = [
        "",
        "<p",
        "</b>Hello.",
        "<b><i>Hello.</b></i>",
        "<!-- a",
        "1 < 2 &nope; <>",
        "<p> </p>",
    ]
    found = translate(running, q=sources, format="html").json["translatedText"]
    assert (found[0], found[1], found[4], found[6]) == ("", "<p", "<!-- a", "<p> </p>")
    assert found[2].startswith("</b>Ol")
    assert [TAG.findall(each) for each in found] == [TAG.findall(each) for each in sources]


def test_the_language_of_html_is_that_of_its_text(both_ways: Running) -> None:
    tags = '<div class="the house of this train" title="Where is the station?">'
    text = f"{tags}Onde fica a esta&ccedil;&atilde;o?</div><script>where is the cat</script>"
    found = translate(both_ways, q=[text, ""], format="html", source="auto", target="en").json
    assert [each["language"] for each in found["detectedLanguage"]] == ["pt", "pt"]
    assert found["detectedLanguage"][0]["confidence"] > 90
    assert found["translatedText"][1] == ""


def test_html_may_come_as_a_form(running: Running) -> None:
    fields = {"q": HTML, "source": "en", "target": "pt", "format": "html"}
    assert post_form(running, "/translate", fields).json == translate(running, **fields).json


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
