"""What the server writes: lines for machines or for people, and nothing that a user sent."""

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.telemetry import logs
from dragoman_server.service.telemetry.logs import LogSettings
from support import MODEL
from support.service_process import SMALL, started
from support.service_running import PATIENCE, few_rows, serving, settings_for, variant

KEY = "alice-0123456789abcdef"
PRIVATE = ("Xylophonist", "Zanzibar")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which is put back."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def an_exception(logger: str) -> None:
    try:
        try:
            raise KeyError("Xylophonist")
        except KeyError as error:
            raise RuntimeError("Zanzibar in /etc/passwd") from error
    except RuntimeError:
        logging.getLogger(logger).exception("it failed", extra={"facts": {"request_id": "r1"}})


def test_a_line_for_machines_is_json(root: logging.Logger) -> None:
    stream = io.StringIO()
    logs.set_up(LogSettings(), stream)
    log = logging.getLogger("dragoman.server")
    log.info("now %s", "serving", extra={"facts": {"seconds": 1.5}})
    log.debug("not wanted")
    line = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "logger": "dragoman.server",
        "message": "now serving",
        "seconds": 1.5,
    }


def test_a_line_on_a_terminal_is_readable(root: logging.Logger) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    logs.set_up(LogSettings(), stream)
    logging.getLogger("a").info("now serving", extra={"facts": {"model": "en-pt", "seconds": 1}})
    logging.getLogger("a").warning("take care")
    first, second = stream.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d now serving  model=en-pt  seconds=1", first)
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning: take care", second)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_trace_says_where_but_not_what_was_at_hand(root: logging.Logger, form: str) -> None:
    stream = io.StringIO()
    logs.set_up(LogSettings(log_format=form), stream)
    an_exception("dragoman.calls")
    written = stream.getvalue()
    for part in ("RuntimeError", "KeyError", "test_logs.py:", "an_exception", "r1"):
        assert part in written
    for private in (*PRIVATE, "/"):
        assert private not in written
    if form == "json":
        assert len(json.loads(written)["trace"]) == 4


def test_a_trace_of_the_engine_says_all_because_it_knows_no_text(root: logging.Logger) -> None:
    stream = io.StringIO()
    logs.set_up(LogSettings(log_format="json"), stream)
    an_exception("dragoman_server.engine.engine")
    assert "Zanzibar in /etc/passwd" in stream.getvalue()


def test_nothing_that_a_user_sent_and_no_path_is_in_the_log(tmp_path: Path) -> None:
    """Whatever goes well or wrong. Each call has a line, with its id."""
    keys = tmp_path / "keys"
    keys.write_text(f"alice {KEY}\n")
    damaged = variant(tmp_path, "damaged")
    (damaged / "weights.bin").write_bytes(b"")
    flags = (*SMALL, "--keys", keys, "--skip-refused")
    text = " ".join(PRIVATE) + " lives here. https://zanzibar.example/xylophonist"
    bundles = (MODEL, damaged)
    with started(tmp_path, *flags, bundles=bundles) as process, process.connected() as (stub, _):

        def call(function: object, request: object, key: str = KEY) -> None:
            metadata = [("authorization", f"Bearer {key}"), ("x-request-id", f"id-{len(codes)}")]
            try:
                response = function(request, metadata=metadata, timeout=PATIENCE)  # type: ignore[operator]
                if not hasattr(response, "DESCRIPTOR"):
                    list(response)
                codes.append("OK")
            except grpc.RpcError as error:
                codes.append(error.code().name)

        codes: list[str] = []
        options = pb.Options(target_prefix=PRIVATE[0], suppressed_pieces=[PRIVATE[1]])
        call(stub.Translate, pb.TranslateRequest(texts=[text]))
        call(stub.TranslateStream, pb.TranslateStreamRequest(text=text))
        call(stub.TranslateBulk, iter([pb.TranslateBulkRequest(id=PRIVATE[0], text=text)]))
        call(stub.Score, pb.ScoreRequest(pairs=[pb.ScorePair(source=text, target=text)]))
        call(stub.Translate, pb.TranslateRequest(texts=[text], model=PRIVATE[0]))
        call(stub.Translate, pb.TranslateRequest(texts=[text], source_language=PRIVATE[0]))
        call(stub.Translate, pb.TranslateRequest(texts=[text], options=options))
        call(stub.Translate, pb.TranslateRequest(texts=[text]), f"{PRIVATE[1]}-0123456789abcdef")
        call(stub.GetModel, pb.GetModelRequest(model="damaged"))
        process.signal()
        assert process.wait() == 0
    assert codes == [
        *("OK", "OK", "OK", "OK", "NOT_FOUND", "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        *("UNAUTHENTICATED", "FAILED_PRECONDITION"),
    ]
    written = process.errors
    for private in (*PRIVATE, *map(str.lower, PRIVATE), KEY, "0123456789", str(tmp_path)):
        assert private not in written
    assert not re.search(r"(?<![\w.])/\w", written), "a path"
    lines = [json.loads(line) for line in written.splitlines()]
    calls = [line for line in lines if line["logger"] == "dragoman.calls"]
    assert [line["request_id"] for line in calls] == [f"id-{n}" for n in range(len(codes))]
    assert [line["code"] for line in calls] == codes
    assert calls[0].keys() >= {
        "rpc",
        "seconds",
        "client",
        "model",
        "source_tokens",
        "target_tokens",
    }
    assert calls[2]["items"] == 1
    assert calls[0]["client"] == "alice"
    assert "client" not in calls[7]
    (refused,) = (line for line in lines if line["level"] == "error")
    assert refused["bundle"] == "damaged"
    assert "damaged" in refused["message"]


def test_what_fails_on_the_event_loop_is_logged_without_what_was_at_hand(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(settings_for(engine=few_rows(1))) as running:

        def fail() -> None:
            raise RuntimeError("Zanzibar")

        running.loop.call_soon_threadsafe(fail)
        running.on_loop(lambda: None)
    (record,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert record.getMessage() == "something failed on the event loop"
    assert "Zanzibar" not in logs.JsonFormatter().format(record)
    assert "RuntimeError" in logs.JsonFormatter().format(record)
