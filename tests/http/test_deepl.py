"""DeepL's API, by its own client and by hand."""

from typing import Any

import deepl
import pytest

from support.deepl_client import deepl_client
from support.http_client import call, get, post, post_form
from support.service_running import Running

from .conftest import KEY, LIMITED

TEXTS = ["The cat sits on the mat.", "It rains."]


def test_its_client_translates(running: Running) -> None:
    expected = [each.text for each in running.translate(*TEXTS)]
    with deepl_client(running) as translator:
        for target in ("PT-BR", "PT-PT"):
            found = translator.translate_text(TEXTS, target_lang=target)
            assert isinstance(found, list)
            assert [each.text for each in found] == expected
            assert [each.detected_source_lang for each in found] == ["EN", "EN"]
            assert [each.billed_characters for each in found] == list(map(len, TEXTS))
        one = translator.translate_text(
            TEXTS[0],
            source_lang="EN",
            target_lang="PT-BR",
            formality="prefer_less",
            split_sentences="0",
            preserve_formatting=True,
        )
        assert isinstance(one, deepl.TextResult)
        assert one.text == expected[0]


def test_its_client_detects(both_ways: Running) -> None:
    with deepl_client(both_ways) as translator:
        found = translator.translate_text("Onde fica a estação?", target_lang="EN-US")
        assert isinstance(found, deepl.TextResult)
        assert found.detected_source_lang == "PT"


def test_its_client_lists_languages(running: Running) -> None:
    with deepl_client(running) as translator:
        sources, targets = translator.get_source_languages(), translator.get_target_languages()
    assert [(each.code, each.name) for each in sources] == [("EN", "English")]
    assert [(each.code, each.name) for each in targets] == [
        ("PT-BR", "Portuguese (Brazil)"),
        ("PT-PT", "Portuguese (Portugal)"),
    ]
    assert not any(each.supports_formality for each in targets)


def test_its_client_sees_its_usage(keyed: Running) -> None:
    with deepl_client(keyed, KEY) as translator:
        before = translator.get_usage().character
        translator.translate_text(TEXTS, target_lang="PT-BR")
        after = translator.get_usage().character
    assert after.count == (before.count or 0) + sum(map(len, TEXTS))
    assert not after.limit_reached


def test_its_client_is_refused_without_a_key(keyed: Running) -> None:
    for key in ("wrong", LIMITED):
        with deepl_client(keyed, key) as translator, pytest.raises(deepl.AuthorizationException):
            translator.translate_text("Hello.", target_lang="PT-BR")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"target_lang": "DE"}, "Value for 'target_lang' not supported"),
        ({"source_lang": "DE"}, "Value for 'source_lang' not supported"),
        ({"formality": "more"}, "Value for 'formality' not supported"),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported"),
        ({"context": "At sea."}, "Parameter context is not supported"),
        ({"tag_handling": "json"}, "Value for 'tag_handling' not supported"),
        ({"ignore_tags": "x"}, "Parameter ignore_tags needs tag_handling"),
        ({"splitting_tags": ["x"]}, "Parameter splitting_tags needs tag_handling"),
        ({"non_splitting_tags": ["x"]}, "Parameter non_splitting_tags needs tag_handling"),
        ({"outline_detection": False}, "Parameter outline_detection needs tag_handling"),
        ({"source_lang": "EN", "glossary_ids": ["x"]}, "Parameter glossary_ids is not supported"),
        ({"custom_instructions": ["Be brief."]}, "custom_instructions is not supported"),
    ],
)
def test_what_we_can_not_do_is_refused(
    running: Running, more: dict[str, Any], message: str
) -> None:
    with deepl_client(running) as translator, pytest.raises(deepl.DeepLException, match=message):
        translator.translate_text(TEXTS[0], **{"target_lang": "PT-BR", **more})


def test_documents_are_not_there_yet(running: Running) -> None:
    with (
        deepl_client(running) as translator,
        pytest.raises(deepl.DeepLException, match="documents are not supported"),
    ):
        translator.translate_document_upload(b"text", target_lang="PT-BR", filename="a.txt")


def test_forms_and_json_are_the_same(running: Running) -> None:
    fields = {"text": TEXTS, "target_lang": "PT-BR", "show_billed_characters": "true"}
    form = post_form(running, "/v2/translate", fields)
    assert form.status == 200
    assert post(running, "/v2/translate", {**fields, "show_billed_characters": True}).body == (
        form.body
    )
    assert form.json["translations"][0].keys() == {
        "detected_source_language",
        "text",
        "billed_characters",
    }


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({}, 400),
        ({"text": [], "target_lang": "PT"}, 400),
        ({"text": ["a"]}, 400),
        ({"text": [1], "target_lang": "PT"}, 400),
        ({"text": ["a"], "target_lang": 1}, 400),
        ({"text": ["a"], "target_lang": "PT", "show_billed_characters": "maybe"}, 400),
        ({"text": ["a"], "target_lang": "PT", "nonsense": "1"}, 400),
        ({"text": "a", "target_lang": "PT"}, 200),
    ],
)
def test_statuses(running: Running, value: Any, status: int) -> None:
    reply = post(running, "/v2/translate", value)
    assert reply.status == status
    assert reply.json.keys() == ({"message"} if status != 200 else {"translations"})


def test_other_errors(running: Running, keyed: Running) -> None:
    assert get(running, "/v2/languages?type=other").status == 400
    assert get(keyed, "/v2/usage").status == 403
    assert get(keyed, "/v2/usage", authorization=f"DeepL-Auth-Key {KEY}").status == 200
    assert (
        call(running, "POST", "/v2/translate", b"{", {"content-type": "text/plain"}).status == 415
    )
