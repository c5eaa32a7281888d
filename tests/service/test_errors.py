"""Requests that are refused, by real clients: code, reason, field, details."""

import gzip
import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.settings import Limits
from support import MODEL
from support.service_errors import WORDS, assert_nothing_is_left, expect, raw, translate
from support.service_running import Running, few_rows, refusal, serving, settings_for, variant

LIMITS = Limits(max_message_bytes=20_000, max_texts=8, max_source_tokens=400, max_target_tokens=256)
LONG_SENTENCE = "word " * 300


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("bundles")
    damaged = variant(directory, "damaged")
    (damaged / "weights.bin").write_bytes(b"")
    settings = settings_for(
        *(MODEL, variant(directory, "en-de", target="de"), damaged),
        engine=few_rows(4, max_beam=4),
        limits=LIMITS,
        skip_refused=True,
    )
    with serving(settings) as running:
        yield running


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("options.beam_size", {"beam_size": 0}),
    ("options.beam_size", {"beam_size": 5}),
    ("options.beam_size", {"beam_size": 2, "sampling": pb.Sampling()}),
    ("options.alternatives", {"alternatives": 2}),
    ("options.length_penalty", {"length_penalty": -1}),
    ("options.length_penalty", {"length_penalty": math.nan}),
    ("options.sampling.temperature", {"sampling": pb.Sampling(temperature=0)}),
    ("options.sampling.top_p", {"sampling": pb.Sampling(top_p=1.5)}),
    ("options.repetition_penalty", {"repetition_penalty": math.inf}),
    ("options.max_tokens", {"max_tokens": 257}),
    ("options.max_tokens", {"max_tokens": 3, "min_tokens": 3}),
    ("options.min_tokens", {"min_tokens": 256}),
    ("options.suppressed_pieces[1]", {"suppressed_pieces": ["▁de", WORDS]}),
    ("options.suppressed_pieces", {"suppressed_pieces": ["▁de"] * 257}),
    ("options.suppressed_pieces", {"suppressed_pieces": ["</s>"]}),
    ("options.target_prefix", {"target_prefix": LONG_SENTENCE}),
    ("options.overlong", {"overlong": 7}),
]


@pytest.mark.parametrize(("field", "options"), OPTIONS)
def test_a_bad_option_is_named(running: Running, field: str, options: dict[str, Any]) -> None:
    found = refusal(translate(running, options=pb.Options(**options)))
    expect(found, StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", field)


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"texts": []}, "INVALID_FIELD", "texts"),
        ({"texts": ["a"] * 9}, "TOO_LARGE", "texts"),
        ({"texts": ["Hello there. " * 70] * 3}, "TOO_LARGE", "texts"),
        (
            {
                "texts": ["Fine.", LONG_SENTENCE],
                "options": pb.Options(overlong=pb.OVERLONG_POLICY_ERROR),
            },
            "SENTENCE_TOO_LONG",
            "texts[1]",
        ),
        (
            {"texts": ["One. Two."], "options": pb.Options(target_prefix="Um")},
            "INVALID_FIELD",
            "options.target_prefix",
        ),
        ({"source_language": "english"}, "INVALID_FIELD", "source_language"),
        ({"target_language": "p t"}, "INVALID_FIELD", "target_language"),
        ({"target_language": "é" * 100}, "INVALID_FIELD", "target_language"),
        ({"model": ""}, "INVALID_FIELD", "model"),
        ({"model": "", "source_language": "en"}, "INVALID_FIELD", "model"),
    ],
)
def test_a_bad_request_is_refused_with_the_field(
    running: Running, fields: dict[str, Any], reason: str, field: str
) -> None:
    found = refusal(translate(running, **fields))
    expect(found, StatusCode.INVALID_ARGUMENT, reason, field)


def test_a_long_sentence_is_split_where_nothing_else_is_asked_for(running: Running) -> None:
    options = pb.Options(max_tokens=1)
    translate(running, texts=[LONG_SENTENCE], options=options)()


@pytest.mark.parametrize(
    ("pair", "more", "reason", "field"),
    [
        ({}, {"pairs": []}, "INVALID_FIELD", "pairs"),
        ({"source": " "}, {}, "INVALID_FIELD", "pairs[0].source"),
        ({"source": LONG_SENTENCE}, {}, "SENTENCE_TOO_LONG", "pairs[0].source"),
        ({"target": LONG_SENTENCE}, {}, "SENTENCE_TOO_LONG", "pairs[0].target"),
        ({}, {"length_penalty": -1}, "INVALID_FIELD", "length_penalty"),
        ({"source": "Hello there. " * 30}, {"count": 5}, "TOO_LARGE", "pairs"),
        ({}, {"count": 9}, "TOO_LARGE", "pairs"),
    ],
)
def test_a_bad_pair_to_score_is_refused_with_the_field(
    running: Running, pair: dict[str, Any], more: dict[str, Any], reason: str, field: str
) -> None:
    one = pb.ScorePair(**{"source": WORDS, "target": WORDS, **pair})
    fields = {"pairs": [one] * more.pop("count", 1), "model": "en-pt", **more}
    found = refusal(lambda: running.stub.Score(pb.ScoreRequest(**fields)))
    expect(found, StatusCode.INVALID_ARGUMENT, reason, field)


INVALID = b"\xff\xfe" + WORDS.encode()


def field(number: int, value: bytes) -> bytes:
    """A field of a message, of a type that has a length."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


@pytest.mark.parametrize(
    ("rpc", "message", "name"),
    [
        ("Translate", field(1, b"fine") + field(1, INVALID), "texts[1]"),
        ("Translate", field(1, b"fine") + field(4, INVALID), "model"),
        (
            "Translate",
            field(1, b"fine") + field(5, field(7, INVALID)),
            "options.suppressed_pieces[0]",
        ),
        ("TranslateStream", field(1, INVALID), "text"),
        ("TranslateBulk", field(1, b"1") + field(2, INVALID), "text"),
        ("Score", field(1, field(1, b"a") + field(2, INVALID)), "pairs[0].target"),
        ("GetModel", field(1, INVALID), "model"),
    ],
)
def test_text_that_is_not_utf_8_is_refused_with_the_field(
    running: Running, rpc: str, message: bytes, name: str
) -> None:
    found = refusal(raw(running, rpc, message))
    expect(found, StatusCode.INVALID_ARGUMENT, "INVALID_UTF8", name)


@pytest.mark.parametrize("rpc", ["Translate", "TranslateStream", "TranslateBulk", "Score"])
@pytest.mark.parametrize("message", [b"\x0a\xff", b"\xff" * 40, b"\x0a\x05abc"])
def test_bytes_that_are_no_message_are_refused(running: Running, rpc: str, message: bytes) -> None:
    found = refusal(raw(running, rpc, message))
    expect(found, StatusCode.INVALID_ARGUMENT, "MALFORMED", "")


@pytest.mark.parametrize("rpc", ["Translate", "TranslateStream", "TranslateBulk", "Score"])
def test_a_message_above_the_limit_is_refused_by_us(running: Running, rpc: str) -> None:
    found = refusal(raw(running, rpc, b"\x0a" * (LIMITS.max_message_bytes + 1)))
    expect(found, StatusCode.INVALID_ARGUMENT, "TOO_LARGE", "")
    assert str(LIMITS.max_message_bytes) in found.message


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
def test_a_message_far_above_the_limit_is_refused_by_grpc(
    running: Running, compression: grpc.Compression | None
) -> None:
    """As it comes, or as it is unpacked: before there is memory for all of it."""
    huge = b"\x0a" * 5_000_000
    assert len(gzip.compress(huge)) < LIMITS.max_message_bytes
    with pytest.raises(grpc.RpcError) as error:
        raw(running, "Translate", huge, compression=compression)()
    assert error.value.code() is StatusCode.RESOURCE_EXHAUSTED
    assert running.is_healthy()


def test_a_call_that_there_is_not_is_unimplemented(running: Running) -> None:
    with pytest.raises(grpc.RpcError) as error:
        raw(running, "Sing", b"")()
    assert error.value.code() is StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("name", ["en-fr", WORDS, "../en-pt", "EN-PT", "x" * 5000])
def test_an_unknown_model_is_not_found(running: Running, name: str) -> None:
    for call in (
        translate(running, model=name),
        lambda: running.stub.GetModel(pb.GetModelRequest(model=name)),
        lambda: list(running.stub.TranslateStream(pb.TranslateStreamRequest(model=name))),
    ):
        expect(refusal(call), StatusCode.NOT_FOUND, "UNKNOWN_MODEL")


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "", "source_language": "en", "target_language": "ja"},
        {"model": "", "source_language": "pt", "target_language": "en"},
        {"model": "", "source_language": "en", "target_language": "x-pt"},
        {"model": "en-pt", "target_language": "de"},  # what is given has to fit
    ],
)
def test_languages_that_no_model_translates_are_not_found(
    running: Running, fields: dict[str, str]
) -> None:
    expect(refusal(translate(running, **fields)), StatusCode.NOT_FOUND, "UNKNOWN_LANGUAGES")


def test_a_model_whose_bundle_was_refused_is_a_failed_precondition(running: Running) -> None:
    found = refusal(translate(running, model="damaged"))
    expect(found, StatusCode.FAILED_PRECONDITION, "BUNDLE_REFUSED")
    assert [model.name for model in running.stub.ListModels(pb.ListModelsRequest()).models] == [
        "en-pt",
        "en-de",
    ]


def test_nothing_is_left_after_all_these(running: Running) -> None:
    assert_nothing_is_left(running)
