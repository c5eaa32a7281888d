"""Both clients with TLS and keys: what is trusted, and what is refused."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import (
    TLS,
    AsyncClient,
    AuthenticationError,
    CallError,
    Client,
    ConfigurationError,
    PermissionDeniedError,
    Translation,
    UnavailableError,
)
from support import MODEL
from support.client_servers import KEY, ONCE, make_certificate
from support.service_running import Running, serving, settings_for


class Secured:
    """A server with TLS and keys."""

    def __init__(self, running: Running, certificate: Path, other: Path) -> None:
        self.address = running.server.address
        self.by_name = f"localhost:{self.address.rpartition(':')[2]}"
        self.certificate = certificate
        self.tls = TLS(root_certificates=certificate, server_name="localhost")
        self.other = TLS(root_certificates=str(other), server_name="localhost")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    certificate, key = make_certificate(directory / "server")
    other, _ = make_certificate(directory / "other")
    keys = directory / "keys"
    keys.write_text(f"me {KEY}\nguest {KEY[::-1]} another-model\n")
    settings = settings_for(MODEL, tls_certificate=certificate, tls_key=key, keys=keys)
    with serving(settings) as running:
        yield Secured(running, certificate, other)


def test_tls_and_a_key(secured: Secured) -> None:
    with Client(secured.address, tls=secured.tls, key=KEY) as client:
        assert client.translate("Hello.").text == "Olá."
        assert [each.text for each in _texts(client.translate_many(["Hello."]))] == ["Olá."]
        assert "".join(client.stream("Hello.")) == "Olá."
        assert client.health()

    async def run() -> str:
        async with AsyncClient(secured.address, tls=secured.tls, key=KEY) as client:
            many = [each async for each in client.translate_many(["Hello."])]
            assert [each.text for each in _texts(many)] == ["Olá."]
            return (await client.translate("Hello.")).text

    assert asyncio.run(run()) == "Olá."


def _texts(results: Any) -> Iterator[Translation]:
    for each in results:
        assert isinstance(each, Translation), each
        yield each


@pytest.mark.parametrize(
    ("key", "kind", "reason"),
    [
        (None, AuthenticationError, "NO_KEY"),
        ("not-one-that-is-known", AuthenticationError, "WRONG_KEY"),
        (KEY[::-1], PermissionDeniedError, "NOT_ALLOWED"),
    ],
)
def test_without_a_key_that_is_known(
    secured: Secured, key: str | None, kind: type[CallError], reason: str
) -> None:
    with Client(secured.address, tls=secured.tls, key=key) as client:
        for call in (
            lambda: client.translate("Hello.", model="en-pt"),
            lambda: next(client.stream("Hello.", model="en-pt")),
            lambda: _raise(next(client.translate_many(["Hello."], model="en-pt"))),
        ):
            with pytest.raises(kind) as raised:
                call()
            assert raised.value.reason == reason
            assert key is None or key not in str(raised.value)
        assert client.health()  # needs none


def _raise(found: Any) -> None:
    raise found


def test_a_certificate_of_another_name_is_refused_unless_it_is_named(secured: Secured) -> None:
    unnamed = TLS(root_certificates=secured.certificate)
    with _client(secured.address, unnamed) as client, pytest.raises(UnavailableError):
        client.translate("Hello.")
    with _client(secured.by_name, unnamed) as client:
        assert client.translate("Hello.").text == "Olá."


def test_a_certificate_that_nobody_vouches_for_is_refused(secured: Secured) -> None:
    for tls in (secured.other, TLS(server_name="localhost")):
        says = pytest.raises(UnavailableError, match=r"(?i)certificate")
        with _client(secured.address, tls) as client, says:
            client.translate("Hello.")


def test_who_speaks_without_tls_to_a_server_with_it_gets_an_error(secured: Secured) -> None:
    with _client(secured.address, None) as client, pytest.raises(UnavailableError):
        client.translate("Hello.", timeout=20.0)


def _client(address: str, tls: TLS | None) -> Client:
    return Client(address, tls=tls, key=KEY, retries=ONCE)


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path / "expired", expired=True)
    settings = settings_for(MODEL, tls_certificate=certificate, tls_key=key)
    with serving(settings, until_ready=False) as running:
        tls = TLS(root_certificates=certificate, server_name="localhost")
        says = pytest.raises(UnavailableError, match=r"(?i)expired")
        with _client(running.server.address, tls) as client, says:
            client.health()


def test_certificates_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        Client(tls=TLS(root_certificates=tmp_path / "nowhere"))
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigurationError, match="no PEM certificate"):
        Client(tls=TLS(root_certificates=tmp_path / "empty"))
