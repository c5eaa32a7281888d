"""Tags and line breaks in texts of DeepL's clients."""

import re
from typing import Any

import deepl
import pytest

from support.deepl_client import deepl_client
from support.http_client import post, post_form
from support.service_running import Running

XML = "<doc>\n  <p>The <b>red</b> car &amp; <x>my dog</x> are fast.</p>\n  <p>It rains.</p>\n</doc>"
LINES = "I like my\ndog. It is <red> & big.\n\nIt rains.\n"


def translate(running: Running, text: str, **more: Any) -> str:
    with deepl_client(running) as translator:
        found = translator.translate_text(text, source_lang="EN", target_lang="PT-BR", **more)
    assert isinstance(found, deepl.TextResult)
    assert found.billed_characters == len(text)
    return found.text


@pytest.mark.parametrize("tags", ["x", ["x"], "y,x", ["y", "x"], ["y, x"]])
def test_its_client_has_tags_kept_and_ignored(running: Running, tags: Any) -> None:
    found = translate(running, XML, tag_handling="xml", ignore_tags=tags)
    first, second = found.removeprefix("<doc>\n  ").removesuffix("\n</doc>").split("\n  ")
    assert "<b>vermelho</b>" in first
    assert "<x>my dog</x>" in first
    assert second == "<p>Chove.</p>"
    assert "my dog" not in translate(running, XML, tag_handling="xml")


def test_its_client_translates_html(running: Running) -> None:
    found = translate(
        running,
        '<p>The <b>red</b>\ncar.<br>A &lt;tag&gt;. <span class="notranslate">My dog.</span>',
        tag_handling="html",
        tag_handling_version="v2",
    )
    assert found.startswith("<p>O carro <b>vermelho</b>.<br>")
    assert "&lt;" in found
    assert found.endswith('<span class="notranslate">My dog.</span>')


def test_malformed_xml_is_refused_and_malformed_html_is_not(running: Running) -> None:
    broken = "<p>The <b>red</p>\ncar."
    with pytest.raises(deepl.DeepLException) as raised:
        translate(running, broken, tag_handling="xml")
    assert raised.value.http_status_code == 400
    assert "text[0] is not well-formed: an end tag that closes nothing at line 1, column 14" in str(
        raised.value
    )
    with pytest.raises(deepl.DeepLException, match=r"text\[0\] is not well-formed"):
        translate(running, broken, tag_handling="xml", split_sentences="nonewlines")
    assert "vermelh" in translate(running, broken, tag_handling="html")


def test_sentences_end_at_the_tags_that_a_client_says(running: Running) -> None:
    whole = translate(running, "Good morning.")

    def is_whole(text: str, **more: Any) -> bool:
        """Whether a text was translated as one sentence, whatever tags it has."""
        found = translate(running, text, tag_handling="xml", **more)
        return re.sub("<[^>]*>", "", found) == whole

    inline, blocks = "<t>Good <s/>morning.</t>", "<t><a>Good </a><a>morning.</a></t>"
    assert is_whole(inline)
    assert not is_whole(inline, splitting_tags="s")
    assert not is_whole(blocks)
    assert is_whole(blocks, non_splitting_tags=["a"])
    assert is_whole(blocks, outline_detection=False)
    assert not is_whole(blocks, outline_detection=True)
    assert not is_whole(blocks, outline_detection=False, splitting_tags=["a"])


def test_line_breaks_end_sentences_only_where_they_are_to(running: Running) -> None:
    whole = translate(running, "I like my dog.")
    assert not translate(running, LINES).startswith(whole)
    for splitting in ("nonewlines", "0"):
        assert translate(running, "I like my\ndog.\n", split_sentences=splitting) == f"{whole}\n"
    found = translate(running, LINES, split_sentences="nonewlines")
    assert found.startswith(f"{whole} ")
    assert found.endswith(".\n\nChove.\n")
    assert "<red>" in found


def test_line_breaks_of_xml_end_sentences_only_where_they_are_to(running: Running) -> None:
    text = "<d>\n <p>\n I like my\n <b>dog</b>. </p>\n <x>my\n dog</x>\n</d>"
    how = {"tag_handling": "xml", "ignore_tags": ["x"]}
    whole = translate(running, "I like my dog.").removesuffix("cachorro.")
    assert whole.endswith(" ")
    expected = f"<d>\n <p>\n {whole}<b>cachorro</b>. </p>\n <x>my\n dog</x>\n</d>"
    assert translate(running, text, split_sentences="nonewlines", **how) == expected
    assert translate(running, text, split_sentences="0", **how) == expected
    assert translate(running, text, **how) != expected


def test_formatting_is_preserved(running: Running) -> None:
    for text in ("the cat sits on the mat", "the cat sits on the mat.", "  Hello \n"):
        found = translate(running, text, preserve_formatting=True)
        assert found == translate(running, text)
        assert found[:1].islower() == text[:1].islower()
        assert found.endswith(".") == text.endswith(".")
        assert (len(found) - len(found.lstrip())) == (len(text) - len(text.lstrip()))


def test_forms_and_json_are_the_same(running: Running) -> None:
    fields = {
        "text": [XML],
        "target_lang": "PT-BR",
        "tag_handling": "xml",
        "ignore_tags": ["y", "x"],
        "outline_detection": "0",
        "splitting_tags": "p,doc",
    }
    form = post_form(running, "/v2/translate", fields)
    assert form.status == 200
    assert "<x>my dog</x>" in form.json["translations"][0]["text"]
    for switch in (False, 0, "0", "false"):
        value = {**fields, "outline_detection": switch}
        assert post(running, "/v2/translate", value).body == form.body
    joined = {**fields, "ignore_tags": "y,x"}
    assert post_form(running, "/v2/translate", joined).body == form.body


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ignore_tags": 1}, "ignore_tags must be a text, or a list of texts"),
        ({"ignore_tags": [["x"]]}, "ignore_tags must be a text, or a list of texts"),
        ({"outline_detection": "maybe"}, "outline_detection must be true or false"),
        (
            {"non_splitting_tags": [f"t{n}" for n in range(300)]},
            "non_splitting_tags has 300 entries: the limit is 256",
        ),
        ({"tag_handling": 1}, "Value for 'tag_handling' not supported: this server has html, xml."),
    ],
)
def test_what_is_wrong_is_said(running: Running, more: dict[str, Any], message: str) -> None:
    value = {"text": [XML], "target_lang": "PT-BR", "tag_handling": "xml", **more}
    reply = post(running, "/v2/translate", value)
    assert (reply.status, reply.json) == (400, {"message": message})
