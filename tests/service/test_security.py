"""Who may call, and over what: keys, TLS, and addresses that others can reach."""

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.errors import ServerError
from dragoman_server.service.auth import read_keys
from dragoman_server.service.settings import Limits, ServerSettings
from support import MODEL
from support.service_running import (
    PATIENCE,
    Running,
    few_rows,
    held,
    refusal,
    serving,
    settings_for,
    variant,
    wait_until,
)

ALICE, BOB, CAROL = "alice-0123456789abcdef", "bob-0123456789abcdef", "carol-0123456789abcdef"
KEYS = f"""
# name, key, models
alice  {ALICE}
bob    {BOB}  en-br,nowhere

alice  {ALICE}-the-next-one
carol  {CAROL}  en-pr
"""
HELLO = pb.TranslateRequest(texts=["Hello."], source_language="en", target_language="pt")


def bearer(key: str) -> dict[str, Any]:
    return {"metadata": [("authorization", f"Bearer {key}")], "timeout": PATIENCE}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("security")
    keys = directory / "keys"
    keys.write_text(KEYS)
    settings = settings_for(
        *(MODEL, variant(directory, "en-br", target="pt-BR")),
        engine=few_rows(1),
        keys=keys,
        limits=Limits(max_client_calls=2),
    )
    with serving(settings) as running:
        yield running


def test_models_of_keys_that_are_not_here_are_named_when_it_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text(KEYS)
    settings = settings_for(engine=few_rows(1), keys=keys)
    with caplog.at_level("WARNING", "dragoman.server"), serving(settings):
        pass
    assert [record.message for record in caplog.records if record.name == "dragoman.server"] == [
        "keys.txt:4: bob may use 'en-br', which is no model of this server: did you mean en-pt?",
        "keys.txt:4: bob may use 'nowhere', which is no model of this server",
        "keys.txt:7: carol may use 'en-pr', which is no model of this server: did you mean en-pt?",
    ]
    assert "0123456789" not in caplog.text


@pytest.mark.parametrize("key", [ALICE, f"{ALICE}-the-next-one", BOB])
def test_a_key_that_is_known_may_call(running: Running, key: str) -> None:
    assert running.stub.Translate(HELLO, **bearer(key)).translations


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ([], "NO_KEY"),
        ([("authorization", "")], "NO_KEY"),
        ([("authorization", ALICE)], "NO_KEY"),
        ([("authorization", "Bearer ")], "NO_KEY"),
        ([("authorization", f"Basic {ALICE}")], "NO_KEY"),
        ([("authorization", "Bearer alice")], "WRONG_KEY"),
        ([("authorization", f"Bearer {ALICE}x")], "WRONG_KEY"),
        ([("authorization", f"Bearer {ALICE[:-1]}")], "WRONG_KEY"),
        ([("authorization", f"Bearer {ALICE.upper()}")], "WRONG_KEY"),
    ],
)
def test_anyone_else_is_unauthenticated_in_every_call(
    running: Running, metadata: list[tuple[str, str]], reason: str
) -> None:
    stub = running.stub
    before = running.metric(f'dragoman_rejected_total{{reason="{reason}"}}')
    for call in (
        lambda: stub.Translate(HELLO, metadata=metadata),
        lambda: list(stub.TranslateStream(pb.TranslateStreamRequest(text="a"), metadata=metadata)),
        lambda: list(stub.TranslateBulk(iter([]), metadata=metadata)),
        lambda: stub.Score(pb.ScoreRequest(), metadata=metadata),
        lambda: stub.ListModels(pb.ListModelsRequest(), metadata=metadata),
        lambda: stub.GetModel(pb.GetModelRequest(model="en-pt"), metadata=metadata),
    ):
        found = refusal(call)
        assert (found.code, found.reason) == (StatusCode.UNAUTHENTICATED, reason)
        assert "alice" not in found.message.lower()
    after = running.metric(f'dragoman_rejected_total{{reason="{reason}"}}')
    assert after == before + 6


def test_the_scheme_may_be_written_as_one_likes(running: Running) -> None:
    metadata = [("authorization", f"bEARER  {ALICE} ")]
    assert running.stub.Translate(HELLO, metadata=metadata).translations


def test_health_needs_no_key(running: Running) -> None:
    assert running.is_healthy()


def test_a_client_uses_the_models_that_it_may(running: Running) -> None:
    """Among those that suit, its own are chosen; what is named is refused where it is not."""
    stub = running.stub
    assert [m.name for m in stub.ListModels(pb.ListModelsRequest(), **bearer(BOB)).models] == [
        "en-br"
    ]
    models = {
        key: stub.Translate(HELLO, **bearer(key)).translations[0].model for key in (ALICE, BOB)
    }
    assert models == {ALICE: "en-pt", BOB: "en-br"}
    only = pb.TranslateRequest(texts=["Hello."])  # of bob's models there is one
    assert stub.Translate(only, **bearer(BOB)).translations[0].model == "en-br"
    named = pb.TranslateRequest(texts=["Hello."], model="en-pt")
    for call in (
        lambda: stub.Translate(named, **bearer(BOB)),
        lambda: stub.GetModel(pb.GetModelRequest(model="en-pt"), **bearer(BOB)),
        lambda: stub.Translate(HELLO, **bearer(CAROL)),
    ):
        found = refusal(call)
        assert (found.code, found.reason) == (StatusCode.PERMISSION_DENIED, "NOT_ALLOWED")


def test_a_clients_limit_is_its_own(running: Running) -> None:
    with held(running.engine):
        calls = [running.stub.Translate.future(HELLO, **bearer(ALICE)) for _ in range(2)]
        wait_until(lambda: running.server.calls.under_way == 2)
        for key in (ALICE, f"{ALICE}-the-next-one"):  # one client, with two keys
            found = refusal(partial(running.stub.Translate, HELLO, **bearer(key)))
            assert found.reason == "TOO_MANY_CALLS"
        assert running.stub.Translate(HELLO, **bearer(BOB)).translations
    assert all(call.result(PATIENCE).translations for call in calls)
    running.wait_until_idle()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has none"),
        ("# only\n\n", "has none"),
        ("alice short", ":1: it must be a name, a key"),
        (f"alice {ALICE}\nbob", ":2: it must be"),
        (f"alice {ALICE} en-pt more", ":1: it must be"),
        (f"alice {ALICE}\nbob {ALICE}", ":2: this key is there already"),
    ],
)
def test_a_file_of_keys_that_is_wrong_is_refused_without_showing_one(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(ServerError) as error:
        read_keys(path)
    assert problem in str(error.value)
    assert "0123456789" not in str(error.value)


def test_a_file_of_keys_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="can't be read"):
        read_keys(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """For this machine, signed by itself, and its key."""
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost", "-out", certificate),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


def test_with_tls_only_who_speaks_it_is_heard(certificate: tuple[Path, Path]) -> None:
    settings = settings_for(
        engine=few_rows(1), tls_certificate=certificate[0], tls_key=certificate[1]
    )
    with serving(settings) as running:
        trusted = grpc.ssl_channel_credentials(certificate[0].read_bytes())
        with grpc.secure_channel(running.server.address, trusted) as channel:
            assert TranslationServiceStub(channel).Translate(HELLO, timeout=PATIENCE).translations
        for channel in (
            running.channel,
            grpc.secure_channel(running.server.address, grpc.ssl_channel_credentials()),
        ):
            with pytest.raises(grpc.RpcError) as error:
                TranslationServiceStub(channel).Translate(HELLO, timeout=PATIENCE)
            assert error.value.code() is StatusCode.UNAVAILABLE
        channel.close()


def test_a_key_that_is_not_the_certificates_is_refused_at_the_start(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    subprocess.run(
        ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-out", other],
        check=True,
        capture_output=True,
    )
    for paths in ((certificate[0], other), (certificate[0], tmp_path / "nowhere")):
        settings = settings_for(tls_certificate=paths[0], tls_key=paths[1])
        with pytest.raises(ServerError, match=r"are no use for TLS: [A-Z]"), serving(settings):
            pass


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "10.0.0.1:1", "example.org:50051"])
def test_an_address_that_others_can_reach_needs_tls_and_keys_or_a_flag(listen: str) -> None:
    bundles, some = (MODEL,), Path("some")
    with pytest.raises(ValueError, match="which others can reach"):
        ServerSettings(bundles=bundles, listen=listen)
    with pytest.raises(ValueError, match="which others can reach"):
        ServerSettings(bundles=bundles, listen=listen, tls_certificate=some, tls_key=some)
    with pytest.raises(ValueError, match="which others can reach"):
        ServerSettings(bundles=bundles, listen=listen, keys=some)
    ServerSettings(bundles=bundles, listen=listen, allow_open=True)
    ServerSettings(bundles=bundles, listen=listen, tls_certificate=some, tls_key=some, keys=some)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.9.9.9:1", "[::1]:50051", "localhost:1"])
def test_this_machine_needs_neither(listen: str) -> None:
    ServerSettings(bundles=(MODEL,), listen=listen)
