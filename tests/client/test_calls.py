"""Every call of both clients against a real server: results, options, errors."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman_client import (
    Alignment,
    AsyncClient,
    Client,
    ConfigurationError,
    DragomanError,
    FinishReason,
    InvalidRequestError,
    NotFoundError,
    Options,
    Sampling,
    Score,
    StatusCode,
    TimedOutError,
    Translation,
    UnavailableError,
)
from support import MODEL
from support.client_servers import ONCE, PT, nobody
from support.service_running import Running, held, serving, settings_for, wait_until


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
        Options(split_sentences=False, keep_untranslatable=False, overlong="split"),
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
        client.translate("word " * 400, **PT, options=Options(overlong="error"))
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


def test_a_language_is_detected(running: Running, client: Client) -> None:
    (found,) = client.detect("Where is the station?")
    assert found.language == "en"
    assert 0.9 < found.confidence <= 1
    assert client.detect("123")[0].confidence == 0
    translated = client.translate("Where is the station?", source_language="auto")
    assert translated.detected_language == found
    assert client.translate("Where is the station?").detected_language is None
    with pytest.raises(TypeError, match="text is"):
        client.detect(["Hello."])  # type: ignore[arg-type]

    async def run() -> Any:
        async with AsyncClient(running.server.address) as other:
            return await other.detect("Where is the station?")

    assert asyncio.run(run()) == [found]


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
            with Client(running.server.address, retries=ONCE) as other, says as raised:
                other.translate("Hello.")
            assert (raised.value.reason, raised.value.retry_after) == ("DRAINING", 1.0)
        pending.result()


def _request() -> Any:
    from dragoman.v1 import translation_pb2 as pb

    return pb.TranslateRequest(texts=["Hello."])


def test_errors_of_a_server_say_why_and_where(client: Client) -> None:
    with pytest.raises(NotFoundError) as unknown:
        client.translate("Hello.", source_language="en", target_language="ja")
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


def test_no_server_at_all() -> None:
    with nobody() as address, Client(address, retries=ONCE) as client:
        for call in (client.models, client.health, lambda: list(client.translate_many(["a"]))):
            with pytest.raises(UnavailableError) as raised:
                call()
            assert raised.value.code is StatusCode.UNAVAILABLE
            assert isinstance(raised.value, DragomanError)
