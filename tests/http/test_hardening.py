"""What clients may do wrong: a clear status, bounded memory, and nobody else is disturbed."""

import json
import socket
import ssl
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import ServerError
from dragoman_server.service.settings import Limits
from support.client_servers import make_certificate
from support.http_client import JSON, address_of, call, connected, get, post, read_to_end
from support.ports import free_port
from support.service_running import (
    CALLS,
    PATIENCE,
    Running,
    facts_of,
    few_rows,
    held,
    reports_of,
    serving,
    settings_for,
    wait_until,
)

from .conftest import HTTP, KEY

LONG = {"min_tokens": 255, "max_tokens": 256}
HELLO = {"texts": ["Hello."]}
MANY = " ".join(
    f"The cat of house {number} sits on the {'very ' * (number % 9)}old mat."
    for number in range(200)
)
"""Sentences of several lengths, so that their rows are not all free at the same step."""


def request_bytes(path: str, value: Any, length: int | None = None) -> bytes:
    body = json.dumps(value).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body) if length is None else length}\r\n\r\n"
    )
    return head.encode() + body


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/stream", "/translate", "/v2/translate"])
def test_a_client_that_leaves_frees_its_rows_at_the_next_step(
    running: Running, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    values: dict[str, Any] = {
        "/v1/translate": {"texts": ["Hello."], "options": LONG},
        "/v1/stream": {"text": "Hello.", "options": LONG},
        "/translate": {"q": MANY, "source": "en", "target": "pt"},
        "/v2/translate": {"text": [MANY], "target_lang": "PT"},
    }
    engine = running.engine
    with caplog.at_level("INFO", CALLS), reports_of(engine) as reports:
        with held(engine) as gate, connected(running) as connection:
            connection.sendall(request_bytes(path, values[path]))
            gate.wait()
            assert engine.used_rows
            connection.close()
            wait_until(lambda: bool(facts_of(caplog.records)), "the end of the call")
            before = len(reports.all)
        running.wait_until_idle()
        steps = [report for report in reports.all[before:] if report.rows]
    assert len(steps) <= 2, "the step that was under way, and none for those who left"
    (facts,) = facts_of(caplog.records)
    assert facts["code"] == "CANCELLED"


def test_a_client_that_leaves_while_it_sends_leaves_nothing(running: Running) -> None:
    with connected(running) as connection:
        connection.sendall(request_bytes("/v1/translate", HELLO, length=1000))
        wait_until(lambda: running.server.calls.under_way == 1, "the call")
    running.wait_until_idle()


def test_requests_sent_ahead_are_answered_in_order_and_end_with_their_client(
    running: Running,
) -> None:
    one, two = (request_bytes("/v1/translate", {"texts": [text]}) for text in ("Hello.", "Bye."))
    with connected(running) as connection:
        connection.sendall(one + two.replace(b"host: x", b"host: x\r\nconnection: close"))
        answer = read_to_end(connection)
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    with held(running.engine) as gate, connected(running) as connection:
        connection.sendall(one + two)
        gate.wait()
        connection.close()
        wait_until(lambda: not running.server.calls.under_way, "the end of the first call")
    running.wait_until_idle()


def test_a_slow_reader_of_a_stream_holds_back_only_itself() -> None:
    limits = Limits(stream_window=4)
    with serving(settings_for(http=HTTP, engine=few_rows(4), limits=limits)) as running:
        text = "The cat sits on the mat. " * 4000
        with connected(running) as slow:
            wait_until(lambda: running.on_loop(lambda: len(_connections(running))) == 1, "it")
            (protocol,) = running.on_loop(lambda: list(_connections(running)))
            ends = (slow, socket.SO_RCVBUF), (_socket_of(protocol), socket.SO_SNDBUF)
            for end, buffer in ends:  # or the kernel would take the whole of it
                end.setsockopt(socket.SOL_SOCKET, buffer, 4096)
            slow.sendall(request_bytes("/v1/stream", {"text": text, "options": {"mend": False}}))
            wait_until(lambda: protocol.flow.write_paused, "a client that can take no more")
            for _ in range(3):
                assert post(running, "/v1/translate", HELLO).status == 200
            assert protocol.transport.get_write_buffer_size() < 256 * 1024
            wait_until(lambda: running.server.calls.under_way == 1, "the end of the other calls")
            assert protocol.flow.write_paused, "the slow reader's call is the one that is left"
        running.wait_until_idle()


def _socket_of(protocol: Any) -> Any:
    return protocol.transport.get_extra_info("socket")


def _connections(running: Running) -> Any:
    listener: Any = running.server.listeners[1]
    return listener._server.server_state.connections


def test_bodies_over_the_limit_are_refused(running: Running) -> None:
    most = running.server.settings.limits.max_message_bytes
    for path in ("/v1/translate", "/v1/stream", "/translate", "/v2/translate"):
        with connected(running) as connection:  # refused by its length alone
            connection.sendall(request_bytes(path, {}, length=most + 1))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")
    with connected(running) as connection:  # and where that is not said
        connection.sendall(
            b"POST /v1/translate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        chunk = b"%x\r\n%s\r\n" % (65_536, b" " * 65_536)
        for _ in range(most // 65_536 + 2):
            connection.sendall(chunk)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")
    running.wait_until_idle()
    reply = call(running, "POST", "/v1/translate", b"x", {**JSON, "content-encoding": "gzip"})
    assert reply.status == 415


def test_all_bodies_together_have_a_limit() -> None:
    settings = settings_for(http=HTTP, engine=few_rows(2), http_max_buffered_bytes=200_000)
    with serving(settings) as running, ExitStack() as stack:
        half = b" " * 150_000
        slow = stack.enter_context(connected(running))
        slow.sendall(request_bytes("/v1/translate", {}, length=200_000) + half)
        wait_until(lambda: _buffered(running) > 100_000, "half of the body")
        reply = call(running, "POST", "/v1/translate", half, JSON)
        assert reply.status == 429
        assert reply.headers["retry-after"]
        assert post(running, "/v1/translate", HELLO).status == 200, "small ones have room"
        slow.close()
        wait_until(lambda: not _buffered(running), "room")
        assert call(running, "POST", "/v1/translate", half, JSON).status == 400


def _buffered(running: Running) -> int:
    listener: Any = running.server.listeners[1]
    return int(listener._app._native._calls._bodies._buffered)


def test_those_who_take_their_time_are_shown_out() -> None:
    with serving(settings_for(http=HTTP, engine=few_rows(2), http_timeout=0.3)) as running:
        beginnings = (
            b"",
            b"GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: ",
            request_bytes("/v1/translate", {}, length=1000),
            request_bytes("/translate", {}, length=1000),
        )
        for beginning in beginnings:
            with connected(running) as connection:
                connection.sendall(beginning)
                assert read_to_end(connection).startswith(b"HTTP/1.1 408 "), beginning
        with connected(running) as connection:  # the second request of a connection
            connection.sendall(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\nGET /he")
            answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answer
        wait_until(lambda: not running.on_loop(lambda: len(_connections(running))), "their end")


def test_idle_connections_are_closed() -> None:
    settings = settings_for(http=HTTP, engine=few_rows(2), http_idle=0.2)
    with serving(settings) as running, connected(running) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b'{"status":"live"}' in read_to_end(connection)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 100_000, b"431"),
        (b"GET / HTTP/1.1\r\n" + b"x-a: b\r\n" * 20_000, b"431"),
        (b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
    ],
)
def test_heads_that_are_none(running: Running, sent: bytes, status: bytes) -> None:
    with connected(running) as connection:
        connection.sendall(sent)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 " + status)
    assert get(running, "/health/ready").status == 200


def test_connections_have_a_limit() -> None:
    settings = settings_for(http=HTTP, engine=few_rows(2), http_max_connections=4)
    with serving(settings) as running, ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(connected(running))
        wait_until(lambda: running.on_loop(lambda: len(_connections(running))) == 4, "all")
        assert get(running, "/health/live").status == 503


def test_keys_are_asked_for_everywhere(keyed: Running) -> None:
    for method, path in (
        *(("POST", path) for path in ("/v1/translate", "/v1/stream", "/v1/detect", "/v1/score")),
        *(("GET", path) for path in ("/v1/models", "/v1/models/en-pt", "/v1/languages")),
        ("GET", "/metrics"),
    ):
        reply = call(keyed, method, path, "{}", JSON)
        assert reply.status == 401, path
        assert reply.error["reason"] == "NO_KEY"
        assert reply.headers["www-authenticate"] == "Bearer"
        wrong = call(keyed, method, path, "{}", {**JSON, "authorization": "Bearer x"})
        assert (wrong.status, wrong.error["reason"]) == (401, "WRONG_KEY")
        right = call(keyed, method, path, "{}", {**JSON, "authorization": f"bearer {KEY}"})
        assert right.status in (200, 400)
    for path in ("/health", "/health/live", "/health/ready", "/openapi.json", "/docs/"):
        assert get(keyed, path).status == 200


def test_calls_count_for_http_and_grpc_together() -> None:
    """By address, where there are no keys."""
    settings = settings_for(http=HTTP, engine=few_rows(2), limits=Limits(max_client_calls=1))
    with serving(settings) as running, held(running.engine) as gate:
        under_way = running.stub.Translate.future(pb.TranslateRequest(texts=["Hello."]), PATIENCE)
        gate.wait()
        reply = post(running, "/v1/translate", HELLO)
        assert (reply.status, reply.error["reason"]) == (429, "TOO_MANY_CALLS")
        gate.open()
        assert under_way.result().translations


def test_other_origins_may_call_only_where_that_is_said(running: Running) -> None:
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in get(running, "/health", **asked).headers
    assert call(running, "OPTIONS", "/v1/translate", headers=asked).status == 405
    origins = "https://example.org, http://localhost:3000"
    settings = settings_for(http=HTTP, engine=few_rows(2), http_origins=origins)
    with serving(settings) as other:
        preflight = call(other, "OPTIONS", "/translate", headers=asked)
        assert preflight.status == 200
        assert preflight.headers["access-control-allow-origin"] == "https://example.org"
        stranger = get(other, "/health", origin="https://example.com")
        assert "access-control-allow-origin" not in stranger.headers


def test_tls_has_the_same_certificate(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path / "tls")
    files: dict[str, Any] = {"tls_certificate": certificate, "tls_key": key}
    context = ssl.create_default_context(cafile=certificate)
    with serving(settings_for(http=HTTP, engine=few_rows(2), **files)) as running:
        host, _, port = address_of(running).rpartition(":")
        with (
            socket.create_connection((host, int(port)), timeout=PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert read_to_end(connection).startswith(b"HTTP/1.1 200 ")


def test_a_port_that_is_taken_is_said_with_the_flag() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(ServerError, match=r"it is taken.*--http"),
            serving(settings_for(http=address, engine=few_rows(2))),
        ):
            pass


def test_a_server_that_stops_says_so() -> None:
    with serving(settings_for(http=HTTP, engine=few_rows(2))) as running:
        assert get(running, "/health/ready").status == 200
        with held(running.engine) as gate:
            answers: list[Any] = []
            thread = threading.Thread(
                target=lambda: answers.append(post(running, "/v1/translate", HELLO))
            )
            thread.start()
            gate.wait()
            running.stop()
            wait_until(lambda: get(running, "/health/ready").status == 503, "the end of readiness")
            reply = post(running, "/v1/translate", HELLO)
            assert (reply.status, reply.error["reason"]) == (503, "DRAINING")
            assert reply.headers["retry-after"] == "1"
            assert get(running, "/health/live").status == 200
        thread.join(PATIENCE)
        assert answers[0].status == 200, "what was under way is answered"


def test_an_address_that_others_can_reach_needs_tls_and_keys() -> None:
    with pytest.raises(ValueError, match=r"http is '0[.]0[.]0[.]0:\d+', which others can reach"):
        settings_for(http=f"0.0.0.0:{free_port()}")
