"""Detection of the source language, over HTTP and gRPC: chosen, told, or asked for."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.v1 import translation_pb2 as pb
from support.http_client import events_of, post
from support.service_running import (
    PATIENCE,
    Running,
    few_rows,
    refusal,
    serving,
    settings_for,
    variant,
)

ENGLISH, PORTUGUESE = "Where is the train station?", "Onde fica a estação de comboios?"


def translate(running: Running, *texts: str, **more: Any) -> list[pb.Translation]:
    request = pb.TranslateRequest(texts=texts, **more)
    return list(running.stub.Translate(request, timeout=PATIENCE).translations)


@pytest.mark.parametrize("source", ["auto", "AUTO", ""])
def test_texts_in_different_languages_go_to_different_models(
    both_ways: Running, source: str
) -> None:
    """No target is needed: from each language, a model translates into one only."""
    texts = [ENGLISH, PORTUGUESE, "Good morning, everyone."]
    found = translate(both_ways, *texts, source_language=source)
    assert [each.model for each in found] == ["en-pt", "pt-en", "en-pt"]
    assert [each.detected_language.language for each in found] == ["en", "pt", "en"]
    assert all(each.detected_language.confidence > 0.9 for each in found)
    (alone,) = translate(both_ways, texts[2], source_language="en")
    assert found[2].text == alone.text


def test_a_language_that_was_named_is_not_detected(both_ways: Running) -> None:
    (found,) = translate(both_ways, PORTUGUESE, source_language="en")
    assert found.model == "en-pt"
    assert not found.HasField("detected_language")


def test_the_only_language_is_taken(running: Running) -> None:
    """What it looks like is said all the same."""
    (plain,) = translate(running, PORTUGUESE)
    (found,) = translate(running, PORTUGUESE, source_language="auto")
    assert found.text == plain.text
    assert not plain.HasField("detected_language")
    assert found.detected_language.language == "en"
    assert found.detected_language.confidence < 0.1


def test_what_can_not_be_told_is_asked_for(both_ways: Running) -> None:
    found = refusal(lambda: translate(both_ways, "no", source_language="auto"))
    assert found.code.name == "INVALID_ARGUMENT"
    assert found.reason == "LANGUAGE_UNCERTAIN"
    assert found.fields == ("source_language",)
    assert "texts[0]" in found.message
    reply = post(both_ways, "/v1/stream", {"text": "no", "source_language": "auto"})
    assert (reply.status, reply.error["reason"]) == (400, "LANGUAGE_UNCERTAIN")


def test_what_one_text_does_not_tell_the_others_do(both_ways: Running) -> None:
    more = {"source_language": "auto", "target_language": "pt"}
    found = translate(both_ways, "no", ENGLISH, **more)
    assert [each.detected_language.language for each in found] == ["en", "en"]
    assert found[0].detected_language.confidence < 0.6 < found[1].detected_language.confidence


def test_what_is_in_the_target_language_already_is_refused(both_ways: Running) -> None:
    more = {"source_language": "auto", "target_language": "pt"}
    found = refusal(lambda: translate(both_ways, PORTUGUESE, **more))
    assert found.code.name == "NOT_FOUND"
    assert found.reason == "UNKNOWN_LANGUAGES"
    assert "seems to be in pt" in found.message


def test_two_tags_of_a_language_are_one(tmp_path: Path) -> None:
    models = [
        variant(tmp_path, name, *name.split("_"))
        for name in ("pt-BR_en", "pt_de", "en_pt")  # which may be chosen by their languages only
    ]
    with serving(settings_for(*models, engine=few_rows(2))) as running:
        for target, model in (("en", "pt-BR_en"), ("de", "pt_de")):
            more = {"source_language": "auto", "target_language": target}
            (found,) = translate(running, PORTUGUESE, **more)
            assert found.model == model
            assert found.detected_language.language == "pt-BR"


def test_a_text_without_letters_needs_no_language(both_ways: Running) -> None:
    more = {"source_language": "auto", "target_language": "pt"}
    for text in ("", "123", "😀 …"):
        (found,) = translate(both_ways, text, **more)
        assert found.text == text
        assert found.detected_language.confidence == 0


def test_streams_and_bulk_and_scores_detect_too(both_ways: Running) -> None:
    value = {"text": PORTUGUESE, "source_language": "auto", "target_language": "en"}
    last = events_of(post(both_ways, "/v1/stream", value).body)[-1][1]["translation"]
    assert last["model"] == "pt-en"
    assert last["detected_language"]["language"] == "pt"
    items = [
        pb.TranslateBulkRequest(id=text, text=text, source_language="auto", target_language=target)
        for text, target in ((ENGLISH, "pt"), (PORTUGUESE, "en"))
    ]
    answers = both_ways.stub.TranslateBulk(iter(items), timeout=PATIENCE)
    models = {answer.id: answer.translation.model for answer in answers}
    assert models == {ENGLISH: "en-pt", PORTUGUESE: "pt-en"}
    pairs = [{"source": PORTUGUESE, "target": ENGLISH}]
    scores = post(
        both_ways,
        "/v1/score",
        {"pairs": pairs, "source_language": "auto", "target_language": "en"},
    )
    assert scores.json["model"] == "pt-en"


def test_detect_lists_all_source_languages(both_ways: Running, running: Running) -> None:
    request = pb.DetectRequest(texts=[ENGLISH, PORTUGUESE, "123"])
    found = both_ways.stub.Detect(request, timeout=PATIENCE).detections
    best = [[each.language for each in detection.languages] for detection in found]
    assert best == [["en", "pt"], ["pt", "en"], ["en", "pt"]]
    assert [each.languages[0].confidence > 0.9 for each in found] == [True, True, False]
    over_http = post(both_ways, "/v1/detect", {"texts": [ENGLISH]}).json
    assert over_http["detections"][0]["languages"][0]["language"] == "en"
    (only,) = running.stub.Detect(pb.DetectRequest(texts=[PORTUGUESE]), timeout=PATIENCE).detections
    assert [each.language for each in only.languages] == ["en"]
    assert only.languages[0].confidence < 0.1, "the target is a rival of the only source"
    empty = refusal(lambda: running.stub.Detect(pb.DetectRequest(), timeout=PATIENCE))
    assert empty.fields == ("texts",)
