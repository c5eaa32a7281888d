"""Our JSON API: the same answers as over gRPC, and errors that name the field."""

import http.client
import json
import urllib.request
from typing import Any

import pytest
from google.protobuf import json_format

from dragoman.v1 import translation_pb2 as pb
from support.http_client import JSON, address_of, call, events_of, get, post
from support.service_running import CALLS, PATIENCE, Running, facts_of, full, refusal

TEXTS = ["Hello world.", "", "The cat sits on the mat. It rains! 😀 a@b.org\n\n"]


def test_a_translation_is_that_of_grpc(running: Running) -> None:
    options = pb.Options(beam_size=2, alternatives=2, token_scores=True, alignment=True)
    request = pb.TranslateRequest(texts=TEXTS, source_language="en", options=options)
    expected = running.stub.Translate(request, timeout=PATIENCE)
    reply = post(running, "/v1/translate", json_format.MessageToDict(request))  # lowerCamelCase
    assert reply.status == 200
    assert json_format.ParseDict(reply.json, pb.TranslateResponse()) == expected
    snake = json_format.MessageToDict(request, preserving_proto_field_name=True)
    assert post(running, "/v1/translate", snake).body == reply.body


def test_fields_are_named_as_in_the_proto_and_are_there_without_a_value(running: Running) -> None:
    (translation,) = post(running, "/v1/translate", {"texts": [""]}).json["translations"]
    expected = {
        "text": "",
        "score": 0.0,
        "finish_reason": "FINISH_REASON_END",
        "source_tokens": 0,
        "target_tokens": 0,
        "model": "en-pt",
        "segments": [],
    }
    assert {name: translation[name] for name in expected} == expected
    unset = {name for name, f in pb.Translation.DESCRIPTOR.fields_by_name.items() if f.has_presence}
    assert translation.keys() == set(pb.Translation.DESCRIPTOR.fields_by_name) - unset


def test_a_stream_is_deltas_and_then_the_whole(running: Running) -> None:
    reply = post(running, "/v1/stream", {"text": TEXTS[2], "source_language": "en"})
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    *deltas, (_, last) = events_of(reply.body)
    whole = running.translate(TEXTS[2])[0]
    assert "".join(data["delta"] for _, data in deltas) == whole.text
    assert len(deltas) > 3
    assert {name for name, _ in deltas} == {"message"}
    assert json_format.ParseDict(last["translation"], pb.Translation()) == whole


def test_scores_are_those_of_grpc(running: Running) -> None:
    pairs = [pb.ScorePair(source="Good morning.", target="Bom dia.")]
    expected = running.stub.Score(pb.ScoreRequest(pairs=pairs, token_scores=True), timeout=PATIENCE)
    value = {"pairs": [{"source": "Good morning.", "target": "Bom dia."}], "token_scores": True}
    found = post(running, "/v1/score", value).json
    assert json_format.ParseDict(found, pb.ScoreResponse()) == expected


def test_models_and_languages_are_listed(running: Running) -> None:
    models = running.stub.ListModels(pb.ListModelsRequest(), timeout=PATIENCE)
    assert json_format.ParseDict(get(running, "/v1/models").json, pb.ListModelsResponse()) == models
    one = get(running, "/v1/models/en-pt").json
    assert json_format.ParseDict(one["model"], pb.Model()) == models.models[0]
    assert get(running, "/v1/languages").json == {
        "languages": [{"code": "en", "name": "English", "targets": ["pt"]}]
    }
    french = get(running, "/v1/languages", **{"accept-language": "fr-FR,en;q=0.5"}).json
    assert french["languages"][0]["name"] == "Anglais"
    for odd in ("*", "x-made-up", "zz", "a" * 500, "-", ""):
        found = get(running, "/v1/languages", **{"accept-language": odd}).json
        assert found["languages"][0]["name"] == "English"


@pytest.mark.parametrize(
    ("body", "reason", "field"),
    [
        (b"", "MALFORMED", None),
        (b"{", "MALFORMED", None),
        (b"[" * 100_000, "MALFORMED", None),
        (b'{"texts": [NaN]}', "MALFORMED", None),
        (b'{"texts": ["\xff"]}', "INVALID_UTF8", None),
        (b'{"texts": ["a", "\\ud800"]}', "INVALID_UTF8", "texts[1]"),
        (b"[]", "INVALID_FIELD", None),
        (b"{}", "INVALID_FIELD", "texts"),
        (b'{"texts": "Hello"}', "INVALID_FIELD", "texts"),
        (b'{"texts": [1]}', "INVALID_FIELD", "texts[0]"),
        (b'{"texts": [null]}', "INVALID_FIELD", "texts[0]"),
        (b'{"text": ["a"]}', "INVALID_FIELD", None),
        (b'{"texts": ["a"], "options": 3}', "INVALID_FIELD", "options"),
        (b'{"texts": ["a"], "options": {"x": 3}}', "INVALID_FIELD", "options"),
        (b'{"texts": ["a"], "options": {"beam_size": "x"}}', "INVALID_FIELD", "options.beam_size"),
        (b'{"texts": ["a"], "options": {"beam_size": -1}}', "INVALID_FIELD", "options.beam_size"),
        (b'{"texts": ["a"], "options": {"beam_size": 99}}', "INVALID_FIELD", "options.beam_size"),
        (b'{"texts": ["a"], "options": {"beam_size": true}}', "INVALID_FIELD", "options.beam_size"),
        (b'{"texts": ["a"], "options": {"mend": 1}}', "INVALID_FIELD", "options.mend"),
        (b'{"texts": ["a"], "options": {"overlong": []}}', "INVALID_FIELD", "options.overlong"),
        (
            b'{"texts": ["a"], "options": {"length_penalty": 1e300}}',
            "INVALID_FIELD",
            "options.length_penalty",
        ),
        (
            b'{"texts": ["a"], "options": {"sampling": {"seed": "18446744073709551616"}}}',
            "INVALID_FIELD",
            "options.sampling.seed",
        ),
        (b'{"texts": ["a"], "source_language": "?"}', "INVALID_FIELD", "source_language"),
    ],
)
def test_what_is_wrong_is_named(
    running: Running, body: bytes, reason: str, field: str | None
) -> None:
    reply = call(running, "POST", "/v1/translate", body, JSON)
    assert reply.status == 400, reply.body
    error = reply.error
    assert (error["code"], error["reason"], error.get("field")) == (
        "INVALID_ARGUMENT",
        reason,
        field,
    )
    assert error["message"]
    assert error["request_id"] == reply.headers["x-request-id"]


def test_numbers_of_64_bits_may_be_texts(running: Running) -> None:
    def translate(seed: Any) -> Any:
        options = {"sampling": {"seed": seed, "temperature": 2.0}}
        return post(running, "/v1/translate", {"texts": [TEXTS[0]], "options": options}).json

    assert translate(2**64 - 1) == translate(str(2**64 - 1)) != translate(1)


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "reason"),
    [
        ("GET", "/v1/models/nope", 404, "NOT_FOUND", "UNKNOWN_MODEL"),
        ("GET", "/nope", 404, "NOT_FOUND", "UNKNOWN_PATH"),
        ("GET", "/v1/translate", 405, "UNIMPLEMENTED", "UNKNOWN_METHOD"),
        ("POST", "/v1/translate", 415, "INVALID_ARGUMENT", "MEDIA_TYPE"),
    ],
)
def test_statuses(
    running: Running, method: str, path: str, status: int, code: str, reason: str
) -> None:
    reply = call(running, method, path)
    assert reply.status == status
    assert (reply.error["code"], reply.error["reason"]) == (code, reason)


def test_a_model_or_language_that_is_not_there_is_404(running: Running) -> None:
    for wrong in ({"model": "nope"}, {"target_language": "de"}):
        reply = post(running, "/v1/translate", {"texts": ["a"], **wrong})
        over_grpc = refusal(
            lambda wrong=wrong: running.stub.Translate(  # type: ignore[misc]
                pb.TranslateRequest(texts=["a"], **wrong), timeout=PATIENCE
            )
        )
        assert reply.status == 404
        assert reply.error["reason"] == over_grpc.reason
        assert reply.error["message"] == over_grpc.message


def test_a_full_server_says_when_to_come_back(running: Running) -> None:
    with full(running):
        limits = running.server.settings.limits
        waiting = [
            running.stub.Translate.future(pb.TranslateRequest(texts=["Hello."]), PATIENCE)
            for _ in range(limits.max_waiting_requests)
        ]
        engine = running.engine
        while engine.waiting_requests < limits.max_waiting_requests:
            pass
        for path, value in (
            ("/v1/translate", {"texts": ["a"]}),
            ("/v1/stream", {"text": "a"}),
            ("/translate", {"q": "a", "source": "en", "target": "pt"}),
            ("/v2/translate", {"text": ["a"], "target_lang": "PT"}),
        ):
            reply = post(running, path, value)
            assert reply.status == 429, path
            assert int(reply.headers["retry-after"]) >= 1
            if path.startswith("/v1"):
                assert reply.error["reason"] == "QUEUE_FULL"
                assert 0 < reply.error["retry_after"] <= 30
        reply = post(running, "/v1/translate", {"texts": ["a"]}, prefer="wait=0")
        assert reply.status in (429, 504)
        for call_ in waiting:
            call_.cancel()
    running.wait_until_idle()


def test_a_client_may_say_how_long_it_waits(running: Running) -> None:
    with full(running):
        reply = post(running, "/v1/translate", {"texts": ["a"]}, prefer="respond-async, wait=1")
        assert reply.status == 504
        assert reply.error["code"] == "DEADLINE_EXCEEDED"
    running.wait_until_idle()


def test_calls_are_logged_and_counted(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", CALLS):
        post(running, "/v1/translate", {"texts": ["Hello."]}, **{"x-request-id": "mine"})
        reply = get(running, "/metrics")
    (facts,) = facts_of(caplog.records)
    assert facts["rpc"] == "/v1/translate"
    assert facts["request_id"] == "mine"
    assert facts["model"] == "en-pt"
    assert 'dragoman_requests_total{code="OK",rpc="/v1/translate"}' in reply.body.decode()


def test_health(running: Running) -> None:
    for path, status in (("/health/live", "live"), ("/health/ready", "ready"), ("/health", "ok")):
        reply = get(running, path)
        assert (reply.status, reply.json) == (200, {"status": status})


def test_a_connection_is_kept(running: Running) -> None:
    connection = http.client.HTTPConnection(address_of(running), timeout=PATIENCE)
    body = json.dumps({"texts": ["Hello."]})
    bodies = set()
    for _ in range(3):
        connection.request("POST", "/v1/translate", body, JSON)
        bodies.add(connection.getresponse().read())
    connection.close()
    assert len(bodies) == 1


def test_the_documentation_comes_from_here_alone(running: Running) -> None:
    for path in ("/docs/", "/docs/docs.js", "/docs/docs.css"):
        reply = get(running, path)
        assert reply.status == 200
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert b"://" not in reply.body
    with urllib.request.urlopen(f"http://{address_of(running)}/docs", timeout=PATIENCE) as found:
        assert found.url.endswith("/docs/")
