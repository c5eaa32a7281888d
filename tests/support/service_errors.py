"""Calls that are to be refused, and what must hold of every refusal."""

from collections.abc import Callable
from typing import Any

from grpc import StatusCode

from dragoman.v1 import translation_pb2 as pb
from support.service_running import PATIENCE, Refusal, Running

SERVICE = "/dragoman.v1.TranslationService/"
WORDS = "Xylophonist Zanzibar"  # not to be found in any error


def translate(running: Running, **fields: Any) -> Callable[[], object]:
    request = pb.TranslateRequest(**{"texts": [WORDS], "model": "en-pt", **fields})
    return lambda: running.stub.Translate(request, timeout=PATIENCE)


def raw(running: Running, rpc: str, *messages: bytes, **options: Any) -> Callable[[], object]:
    """A call whose bytes no stub would send."""
    path = SERVICE + rpc
    if rpc == "TranslateBulk":
        return lambda: list(running.channel.stream_stream(path)(iter(messages)))
    if rpc == "TranslateStream":
        return lambda: list(running.channel.unary_stream(path)(messages[0]))
    return lambda: running.channel.unary_unary(path)(messages[0], **options)


def expect(found: Refusal, code: StatusCode, reason: str, *fields: str) -> Refusal:
    assert (found.code, found.reason, found.fields) == (code, reason, fields)
    for leak in ("Xylo", "Zanzi", "/", "Error", "Traceback", ".py", "NaN"):
        assert leak not in found.message
        assert leak not in str(found.metadata)
    return found


def assert_nothing_is_left(running: Running) -> None:
    running.wait_until_idle()
    in_flight = [v for name, v in running.metrics().items() if "in_flight" in name]
    assert set(in_flight) == {0.0}
