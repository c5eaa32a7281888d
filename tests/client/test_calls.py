"""Every call of both clients against a real server: results, options, errors, TLS and keys."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from dragoman_client import (
    TLS,
    Alignment,
    AsyncClient,
    AuthenticationError,
    CallError,
    Client,
    ConfigurationError,
    DragomanError,
    FinishReason,
    InvalidRequestError,
    NotFoundError,
    Options,
    PermissionDeniedError,
    Retries,
    Sampling,
    Score,
    StatusCode,
    TimedOutError,
    Translation,
    UnavailableError,
)
from dragoman_server.service.settings import Limits
from support import MODEL
from support.client_servers import KEY, make_certificate, nobody
from support.service_running import Running, held, serving, settings_for, wait_until


class Languages(TypedDict):
    source: str
    target: str


PT: Languages = {"source": "en", "target": "pt"}
ONCE = Retries(attempts=1)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(settings_for(MODEL)) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: Running) -> Iterator[Client]:
    with Client(running.server.address) as client:
        yield client


def test_a_sentence(client: Client) -> None:
    found = client.translate("Good morning.", **PT)
    assert found.text == "Bom dia."
    assert found.score < 0
    assert found.finish_reason is FinishReason.END
    assert found.source_tokens > 0
    assert found.target_tokens > 0
    assert found.model == "en-pt"
    (segment,) = found.segments
    assert "Good morning."[segment.source] == "Good morning."
    assert found.text[segment.target] == found.text
    assert (found.timing, found.alternatives, segment.tokens) == (None, (), ())


def test_segments_are_slices_of_both_texts(client: Client) -> None:
    text = "Hello. 😀\n\nGood night."
    found = client.translate(text, **PT)
    assert [text[each.source] for each in found.segments] == ["Hello.", "Good night."]
    assert [found.text[each.target] for each in found.segments] == ["Olá.", "Boa noite."]


def test_everything_that_can_be_asked_for(client: Client) -> None:
    asked = Options(beam_size=4, alternatives=3, token_scores=True, alignment=True, timing=True)
    found = client.translate("Where is the station?", **PT, options=asked)
    (segment,) = found.segments
    assert len(found.alternatives) == 3
    assert found.alternatives[0].text == found.text
    assert [each.score for each in found.alternatives] == sorted(
        (each.score for each in found.alternatives), reverse=True
    )
    assert sum(token.log_prob for token in segment.tokens) == pytest.approx(segment.log_prob)
    assert isinstance(segment.alignment, Alignment)
    assert len(segment.alignment.weights) == len(segment.alignment.target_pieces)
    for row in segment.alignment.weights:
        assert len(row) == len(segment.alignment.source_pieces)
        assert sum(row) == pytest.approx(1.0, abs=1e-3)
    assert found.timing is not None
    assert 0 < found.timing.decode <= found.timing.total


@pytest.mark.parametrize(
    "options",
    [
        Options(sampling=Sampling(seed=7, top_k=5, top_p=0.9, temperature=0.7)),
        Options(length_penalty=0.5, beam_size=2, repetition_penalty=1.2, no_repeat_ngram_size=3),
        Options(min_tokens=3, max_tokens=5, suppressed_pieces=["▁bom"]),
        Options(split_sentences=False, keep_untranslatable=False, split_overlong=True),
    ],
)
def test_every_option_is_understood(client: Client, options: Options) -> None:
    one = client.translate("Good morning to all of you.", **PT, options=options)
    assert one == client.translate("Good morning to all of you.", **PT, options=options)


def test_options_have_their_effect(client: Client) -> None:
    def text(**options: Any) -> Translation:
        return client.translate("Good morning, my friends.", **PT, options=Options(**options))

    assert text(max_tokens=2).finish_reason is FinishReason.LENGTH
    assert text(min_tokens=20, max_tokens=21).target_tokens >= 20
    assert text(target_prefix="Boa").text.startswith("Boa")
    with pytest.raises(InvalidRequestError) as raised:
        client.translate("word " * 400, **PT, options=Options(split_overlong=False))
    assert raised.value.reason == "SENTENCE_TOO_LONG"


def test_a_batch_is_in_order_and_all_or_nothing(client: Client) -> None:
    found = client.translate_batch(["Hello.", "", "Good night."], **PT)
    assert [each.text for each in found] == ["Olá.", "", "Boa noite."]
    assert client.translate_batch(()) == []
    assert client.translate_batch(each for each in ["Hello."]) == found[:1]  # type: ignore[arg-type]


def test_a_stream_is_the_translation(client: Client) -> None:
    text = "Hello. Good night.\n\nWhere is the station? 😀 I want to go home."
    pieces = list(client.stream(text, **PT))
    assert len(pieces) > 3
    assert all(pieces)
    assert "".join(pieces) == client.translate(text, **PT).text


def test_scores(client: Client) -> None:
    good, bad = client.score([("Good morning.", "Bom dia."), ("Good morning.", "Mesa.")], **PT)
    assert isinstance(good, Score)
    assert good.score > bad.score
    assert good.tokens == ()
    (with_tokens,) = client.score(
        iter([("Good morning.", "Bom dia.")]), **PT, token_scores=True, length_penalty=0.0
    )
    assert sum(token.log_prob for token in with_tokens.tokens) == pytest.approx(good.log_prob)
    assert with_tokens.score == pytest.approx(with_tokens.log_prob)
    assert client.score([]) == []


def test_models_and_health(client: Client) -> None:
    (model,) = client.models()
    assert (model.name, model.source_language, model.target_language) == ("en-pt", "en", "pt")
    assert model.max_source_tokens > 100
    assert client.health() is True


def test_a_server_that_stops_says_so() -> None:
    with serving(settings_for(MODEL)) as running, Client(running.server.address) as client:
        with held(running.engine) as gate:
            pending = running.stub.Translate.future(_request(), timeout=30)
            gate.wait()
            running.stop()
            wait_until(lambda: not client.health(), "a server that is not serving")
            says = pytest.raises(UnavailableError)
            with _client(running.server.address, None) as other, says as raised:
                other.translate("Hello.")
            assert (raised.value.reason, raised.value.retry_after) == ("DRAINING", 1.0)
        pending.result()


def _request() -> Any:
    from dragoman.v1 import translation_pb2 as pb

    return pb.TranslateRequest(texts=["Hello."])


def test_errors_of_a_server_say_why_and_where(client: Client) -> None:
    with pytest.raises(NotFoundError) as unknown:
        client.translate("Hello.", source="en", target="ja")
    assert unknown.value.reason == "UNKNOWN_LANGUAGES"
    with pytest.raises(NotFoundError) as nameless:
        client.translate("Hello.", model="nobody")
    assert nameless.value.reason == "UNKNOWN_MODEL"
    with pytest.raises(InvalidRequestError) as wrong:
        client.translate("Hello.", **PT, options=Options(beam_size=99))
    assert (wrong.value.field, wrong.value.reason) == ("options.beam_size", "INVALID_FIELD")
    assert wrong.value.request_id
    with pytest.raises(InvalidRequestError) as empty:
        client.score([("", "")], **PT)
    assert empty.value.field.startswith("pairs[0]")


def test_a_timeout_is_told_from_other_errors(running: Running) -> None:
    with Client(running.server.address, timeout=0.3) as client, held(running.engine):
        with pytest.raises(TimedOutError):
            client.translate("Hello.")
        with pytest.raises(TimedOutError):
            list(client.stream("Hello."))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda client: client.translate("half: \ud83d"),
        lambda client: client.translate("Hello.", timeout=0),
        lambda client: client.translate("Hello.", timeout=float("nan")),
        lambda client: client.translate("Hello.", timeout=float("inf")),
        lambda client: client.stream("Hello.", timeout=0),
        lambda client: client.translate_many([], window=0),
        lambda client: client.score([("a", "\ud83d")]),
        lambda client: Options(beam_size=-1),
        lambda client: Options(target_prefix="\ud83d"),
        lambda client: Options(sampling=Sampling(seed=-1)),
    ],
)
def test_what_can_not_be_right_is_not_sent(running: Running, wrong: Any) -> None:
    with Client(running.server.address) as client, pytest.raises(ConfigurationError):
        wrong(client)


@pytest.mark.parametrize("address", ["", "a b", "http://localhost:50051", "https://x"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_is_no_address_is_refused(kind: Any, address: str) -> None:
    with pytest.raises(ConfigurationError):
        kind(address)


@pytest.mark.parametrize("key", ["", "two\nlines", "ünïcode"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match="key"):
        Client(key=key)


def test_a_client_that_is_closed_says_so(running: Running) -> None:
    with Client(running.server.address) as client:
        client.translate("Hello.")
    client.close()
    for call in (client.models, client.health, lambda: next(client.translate_many(["a"]))):
        with pytest.raises(ConfigurationError, match="closed"):
            call()


def test_every_call_with_an_event_loop(running: Running, client: Client) -> None:
    text = "Hello. Where is the station?"

    async def texts() -> AsyncIterator[str]:
        for line in ("Hello.", "Good night."):
            yield line

    async def run() -> None:
        async with AsyncClient(running.server.address) as other:
            assert await other.translate(text, **PT) == client.translate(text, **PT)
            assert await other.translate_batch([text, ""], **PT) == client.translate_batch(
                [text, ""], **PT
            )
            assert await other.translate_batch([]) == []
            pieces = [piece async for piece in other.stream(text, **PT)]
            assert len(pieces) > 2
            assert "".join(pieces) == client.translate(text, **PT).text
            many = [each async for each in other.translate_many(texts(), **PT)]
            assert many == client.translate_batch(["Hello.", "Good night."], **PT)
            pairs = [("Good morning.", "Bom dia.")]
            assert await other.score(pairs, **PT) == client.score(pairs, **PT)
            assert await other.score([]) == []
            assert await other.models() == client.models()
            assert await other.health() is True
            with pytest.raises(NotFoundError):
                await other.translate(text, model="nobody")
            with pytest.raises(NotFoundError):
                await anext(other.stream(text, model="nobody"))
            with pytest.raises(TimedOutError):
                await other.stream(text, timeout=1e-6).__anext__()
        with pytest.raises(ConfigurationError, match="closed"):
            await other.health()

    asyncio.run(run())


def test_an_async_client_can_be_made_before_its_loop_runs(running: Running) -> None:
    client = AsyncClient(running.server.address)

    async def run() -> str:
        async with client:
            return (await client.translate("Hello.")).text

    assert asyncio.run(run()) == "Olá."


def test_a_cancelled_task_frees_the_rows_of_its_call(running: Running) -> None:
    async def run() -> None:
        async with AsyncClient(running.server.address) as client:
            with held(running.engine) as gate:
                task = asyncio.create_task(client.translate("Hello."))
                await asyncio.to_thread(gate.wait)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    asyncio.run(run())
    running.wait_until_idle()


def test_a_stream_that_is_left_frees_its_rows(running: Running, client: Client) -> None:
    pieces = client.stream("Hello. " * 500)
    next(pieces)
    pieces.close()
    running.wait_until_idle()


# Nearly as much as a request may have, and a few times what the network holds; white space costs
# the model nothing.
LONG_TEXT = f"Hello.\n{' ' * 6_000}\n" * 500
LONG_ANSWER = LONG_TEXT.replace("Hello.", "Olá.")
MOST_AHEAD = Limits().stream_window + 64 * 1024 // 6_000 + 10
"""Sentences: those under way, those in the network's window, and a few in buffers on both ends."""


def test_a_slow_reader_of_a_stream_slows_the_server_and_loses_nothing(
    running: Running, client: Client
) -> None:
    before = _decoded(running)
    pieces = client.stream(LONG_TEXT, timeout=120)
    got = [next(pieces)]
    _check_held_back(running, before)
    got += pieces
    assert "".join(got) == LONG_ANSWER


def test_a_slow_reader_with_an_event_loop_does_too(running: Running) -> None:
    before = _decoded(running)

    async def run() -> None:
        async with AsyncClient(running.server.address) as client:
            pieces = client.stream(LONG_TEXT, timeout=120)
            got = [await anext(pieces)]
            await asyncio.to_thread(_check_held_back, running, before)
            got += [piece async for piece in pieces]
        assert "".join(got) == LONG_ANSWER

    asyncio.run(run())


def _check_held_back(running: Running, before: float) -> None:
    """The server has time, and still does no more than it may be ahead of the reader."""
    wait_until(lambda: _decoded(running) > before, "sentences that are done meanwhile")
    with Client(running.server.address) as other:
        for _ in range(50):
            others = other.translate("Hello.").target_tokens + 1  # the end is one too
    wait_until(lambda: not running.engine.used_rows, "a server that has nothing to do")
    sentences = (_decoded(running) - before) / others - 50
    assert 0 < sentences <= MOST_AHEAD


def _decoded(running: Running) -> float:
    """Keys, of the server's life."""
    return running.metric('dragoman_target_tokens_total{model="en-pt"}')


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


def test_no_server_at_all() -> None:
    with nobody() as address, Client(address, retries=ONCE) as client:
        for call in (client.models, client.health, lambda: list(client.translate_many(["a"]))):
            with pytest.raises(UnavailableError) as raised:
                call()
            assert raised.value.code is StatusCode.UNAVAILABLE
            assert isinstance(raised.value, DragomanError)
