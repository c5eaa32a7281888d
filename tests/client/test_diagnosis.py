"""What the SDK says where gRPC's own words would not help, and of arguments of the wrong type."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

import dragoman_client
from dragoman_client import (
    TLS,
    AsyncClient,
    AuthenticationError,
    CallError,
    Client,
    ConfigurationError,
    NotFoundError,
    Options,
    Retries,
    StatusCode,
    TimedOutError,
    UnavailableError,
)
from dragoman_client._statuses import from_rpc_error
from support import MODEL
from support.client_servers import KEY, Scripted, listening, make_certificate, nobody, status
from support.service_running import Running, held, serving, settings_for

ONCE = Retries(attempts=1)
untyped: Any = dragoman_client
"""For what a type checker would find."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"me {KEY}\n")
    with serving(settings_for(MODEL, keys=keys)) as running:
        yield running


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yields the address of a server with TLS, and its certificate."""
    certificate, key = make_certificate(tmp_path_factory.mktemp("tls") / "own")
    with serving(settings_for(MODEL, tls_certificate=certificate, tls_key=key)) as running:
        yield f"localhost:{running.server.address.rpartition(':')[2]}", certificate


def call(address: str, **settings: Any) -> None:
    with Client(address, **{"retries": ONCE, **settings}) as client:
        client.translate("Hello.")


def call_many(address: str, **settings: Any) -> None:
    with Client(address, **{"retries": ONCE, **settings}) as client:
        list(client.translate_many(["Hello."]))


def ask_for_health(address: str, **settings: Any) -> None:
    with Client(address, **{"retries": ONCE, **settings}) as client:
        client.health()


def call_async(address: str, **settings: Any) -> None:
    async def run() -> None:
        async with AsyncClient(address, **{"retries": ONCE, **settings}) as client:
            await client.translate("Hello.")

    asyncio.run(run())


def call_many_async(address: str, **settings: Any) -> None:
    async def run() -> None:
        async with AsyncClient(address, **{"retries": ONCE, **settings}) as client:
            async for _ in client.translate_many(["Hello."]):
                pass

    asyncio.run(run())


Call = Callable[..., None]
all_calls = pytest.mark.parametrize(
    "ask", [call, call_many, ask_for_health, call_async, call_many_async]
)


@all_calls
def test_nobody_there(ask: Call) -> None:
    with nobody() as address, pytest.raises(UnavailableError) as raised:
        ask(address)
    error = raised.value
    assert (error.reason, error.code) == ("NO_SERVER", StatusCode.UNAVAILABLE)
    assert str(error) == error.message == error.args[0]
    assert error.message.startswith(f"no server answers at {address}: start one with")
    assert error.__notes__[0].startswith("gRPC says: ")  # for who wants to know


def test_no_such_host() -> None:
    with pytest.raises(UnavailableError) as raised:
        call("nowhere.invalid:50051")
    assert (raised.value.reason, "named nowhere.invalid" in str(raised.value)) == ("NO_HOST", True)


def test_an_address_without_a_port_that_can_be() -> None:
    for address, why in (("localhost", "which has no port"), ("localhost:99999", "up to 65535")):
        with pytest.raises(CallError, match=f"{address}, .*{why}") as raised:
            call(address, timeout=20)
        assert raised.value.reason == "NO_SERVER"


def test_a_server_with_tls_and_a_client_without(secured: tuple[str, Path]) -> None:
    with pytest.raises(UnavailableError, match=r"give tls=TLS\(\)") as raised:
        call(secured[0])
    assert raised.value.reason == "TLS_WANTED"


def test_a_client_with_tls_and_a_server_without(running: Running) -> None:
    with pytest.raises(UnavailableError, match="leave out tls") as raised:
        call(running.server.address, tls=TLS())
    assert raised.value.reason == "TLS_REFUSED"


def test_a_certificate_that_is_not_trusted(secured: tuple[str, Path]) -> None:
    address, certificate = secured
    with pytest.raises(UnavailableError, match=r"self-signed.*root_certificates") as raised:
        call(address, tls=TLS())
    assert raised.value.reason == "CERTIFICATE_REFUSED"
    with pytest.raises(UnavailableError, match=r"other\.name") as raised:
        call(address, tls=TLS(root_certificates=certificate, server_name="other.name"))
    assert raised.value.reason == "CERTIFICATE_REFUSED"
    call(address, tls=TLS(root_certificates=certificate))


@contextmanager
def web_server(status_line: str) -> Iterator[str]:
    """A peer that answers every connection as a web server of another protocol would."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1024)
                    connection.sendall(f"HTTP/1.1 {status_line}\r\n\r\n".encode())

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_web_server_is_no_server_of_ours() -> None:
    with web_server("404 Not Found") as address, pytest.raises(UnavailableError) as raised:
        call(address, timeout=20)
    assert address in str(raised.value)
    assert raised.value.reason in {"TLS_WANTED", "CONNECTION_LOST", "NO_SERVER"}


def test_a_server_of_something_else_is_not_ours() -> None:
    class Nothing(Scripted):
        def Translate(self, request: Any, context: Any) -> Any:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

    with listening(Nothing()) as address, pytest.raises(CallError, match="no Dragoman") as raised:
        call(address)
    assert raised.value.reason == "NOT_DRAGOMAN"


def test_a_proxy_that_answers_for_a_server() -> None:
    class Proxy(Scripted):
        def Translate(self, request: Any, context: Any) -> Any:
            context.abort(
                grpc.StatusCode.UNAVAILABLE, "Received http2 header with status: 502 (bad)"
            )

    with listening(Proxy()) as address, pytest.raises(CallError, match="says HTTP 502") as raised:
        call(address)
    assert raised.value.reason == "NOT_GRPC"


@pytest.mark.parametrize("ask", [call, call_async])
def test_no_answer_in_time(running: Running, ask: Call) -> None:
    address = running.server.address
    with held(running.engine), pytest.raises(TimedOutError) as raised:
        ask(address, timeout=0.5, key=KEY)
    assert "timeout" in str(raised.value)
    if raised.value.reason == "NO_ANSWER":  # else the server was a bit earlier
        assert f"no answer from {address} within 0.5 seconds" in str(raised.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (grpc.StatusCode.UNKNOWN, "Stream removed"),
        (grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2"),
        (grpc.StatusCode.INTERNAL, "Internal error from Core"),
    ],
)
def test_a_connection_that_broke_is_no_fault_of_the_server(
    code: grpc.StatusCode, said: str
) -> None:
    class Broken(Scripted):
        def Translate(self, request: Any, context: Any) -> Any:
            context.abort(code, said)

    with listening(Broken()) as address, pytest.raises(UnavailableError) as raised:
        call(address)
    assert raised.value.reason == "CONNECTION_LOST"
    assert f"{address} was reached, and is not any more ({said}" in str(raised.value)


def test_what_the_server_says_itself_stays(running: Running) -> None:
    """With what to do about it, where it is known."""
    address = running.server.address
    with (
        Client(address, key=KEY) as client,
        pytest.raises(NotFoundError, match=r"^no such model: models\(\) lists what there is$"),
    ):
        client.translate("Hello.", model="nobody")
    with Client(address) as client, pytest.raises(AuthenticationError, match="DRAGOMAN_KEY"):
        client.translate("Hello.")
    full = status(grpc.StatusCode.RESOURCE_EXHAUSTED, reason="QUEUE_FULL", retry_after=9.0)
    with listening(Scripted(full)) as peer, pytest.raises(CallError) as raised:
        call(peer)
    assert str(raised.value) == "so it is"


def test_a_client_reads_the_environment(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with nobody() as dead:
        monkeypatch.setenv("DRAGOMAN_ADDRESS", f"{dead}, {running.server.address}")
        monkeypatch.setenv("DRAGOMAN_KEY", KEY)
        with Client() as client:
            assert client.translate("Hello.").text == "Olá."

        async def run() -> str:
            async with AsyncClient() as client:
                return (await client.translate("Hello.")).text

        assert asyncio.run(run()) == "Olá."
        with Client(dead, retries=ONCE) as client, pytest.raises(UnavailableError):
            client.health()  # what is given counts
        with (
            Client(running.server.address, key="x" * 16) as client,
            pytest.raises(AuthenticationError),
        ):
            client.models()
    monkeypatch.setenv("DRAGOMAN_ADDRESS", "a b")
    with pytest.raises(ConfigurationError, match="not an address"):
        Client()
    monkeypatch.setenv("DRAGOMAN_ADDRESS", "")
    monkeypatch.setenv("DRAGOMAN_KEY", "")
    Client().close()


def test_addresses_with_commas_are_for_the_environment() -> None:
    with pytest.raises(ConfigurationError, match="argument of its own"):
        Client("one:1,two:2")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda client: client.translate("Hello.", options={"beam_size": 4}),
            r"options is dict, not Options: give Options\(beam_size=4\)",
        ),
        (lambda client: client.score(["a", "b"]), r"pairs\[0\] is str, not a pair: give \[\(sen"),
        (lambda client: client.score("ab"), "pairs is str, not a list"),
        (lambda client: client.score(7), "pairs is int, not a list"),
        (lambda client: client.score([("a", "b", "c")]), r"pairs\[0\] is tuple, not a pair"),
        (lambda client: client.score([("a", None)]), r"pairs\[0\]\[1\] is None, not str"),
        (lambda client: client.score([("a", "b")], length_penalty="1"), "length_penalty is str"),
        (lambda client: client.score([("a", "b")], token_scores=1), "token_scores is int"),
        (lambda client: client.translate(7), "text is int, not str"),
        (lambda client: client.translate(["Hello."]), "translate_batch takes several"),
        (lambda client: client.translate("Hello.", model=7), "model is int, not str"),
        (lambda client: client.translate("Hello.", timeout="9"), "timeout is str, not a number"),
        (lambda client: client.translate_batch("Hello."), "texts is one str"),
        (lambda client: client.translate_batch(None), "texts is None, not a list"),
        (lambda client: client.translate_batch(["Hello.", None]), r"texts\[1\] is None, not str"),
        (lambda client: client.translate_many("Hello."), "texts is one str"),
        (lambda client: client.translate_many(7), "texts is int"),
        (lambda client: client.translate_many([], window=1.5), "window is float, not int"),
        (lambda client: client.stream(b"Hello."), "text is bytes, not str"),
        (lambda client: client.stream("Hello.", ended=7), "ended is int, not a function"),
        (lambda client: untyped.Options(beam_size="4"), "beam_size is str, not int"),
        (lambda client: untyped.Options(beam_size=True), "beam_size is bool, not int"),
        (lambda client: untyped.Options(length_penalty="1"), "length_penalty is str, not a number"),
        (lambda client: untyped.Options(alignment=1), "alignment is int, not bool"),
        (lambda client: untyped.Options(target_prefix=7), "target_prefix is int, not str"),
        (
            lambda client: untyped.Options(suppressed_pieces="ab"),
            "suppressed_pieces is str, not a list",
        ),
        (
            lambda client: untyped.Options(suppressed_pieces=[1]),
            r"suppressed_pieces\[0\] is int, not str",
        ),
        (
            lambda client: untyped.Options(sampling={"seed": 1}),
            r"sampling is dict, not Sampling: give",
        ),
        (lambda client: untyped.Sampling(top_k=0.5), "top_k is float, not int"),
        (lambda client: untyped.Client(["a:1", "b:2"]), "an address is list, not str: give each"),
        (lambda client: untyped.Client("a:1", tls=True), r"tls is bool, not TLS: give TLS\(\)"),
        (lambda client: untyped.Client("a:1", key=b"k"), "key is bytes, not str"),
        (lambda client: untyped.Client("a:1", timeout=None), "timeout is None, not a number"),
        (
            lambda client: untyped.Client("a:1", retries=3),
            r"retries is int, not Retries: give Retries",
        ),
        (lambda client: untyped.Retries(attempts="3"), "attempts is str, not int"),
        (lambda client: untyped.Retries(outage="1m"), "outage is str, not a number"),
    ],
)
def test_an_argument_of_the_wrong_type_says_what_is_wanted(wrong: Any, says: str) -> None:
    with nobody() as address, Client(address) as client, pytest.raises(TypeError, match=says):
        wrong(client)


def test_a_number_of_any_class_is_a_number() -> None:
    numpy = pytest.importorskip("numpy")
    options = Options(beam_size=numpy.int64(4), length_penalty=numpy.float32(0.5))
    assert (options.to_message().beam_size, options.to_message().length_penalty) == (4, 0.5)


def test_a_fault_of_the_server_stays_one() -> None:
    class Raised:
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.INTERNAL

        def details(self) -> str:
            return "a bug"

        def trailing_metadata(self) -> tuple[()]:
            return ()

    assert from_rpc_error(Raised()).code is StatusCode.INTERNAL
