"""More than the server can take: what is admitted is done, the rest is told when to come back."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.engine.engine import Engine
from dragoman_server.service import responses
from dragoman_server.service.settings import Limits
from dragoman_server.text.plan import Planner
from dragoman_server.text.vocabulary import Vocabulary
from support.service_process import SMALL, Process, is_serving, started
from support.service_running import (
    LONG,
    PATIENCE,
    few_rows,
    full,
    held,
    refusal,
    refusal_of,
    serving,
    settings_for,
    teach_pace,
    wait_until,
)

QUEUE = 64
REQUEST = pb.TranslateRequest(texts=["Good morning."])


@contextmanager
def health_is_watched(health: health_pb2_grpc.HealthStub) -> Iterator[list[float]]:
    """Asks for health again and again meanwhile; yields the seconds that each answer took."""
    seconds: list[float] = []
    stop = threading.Event()
    was_serving = True

    def ask() -> None:
        nonlocal was_serving
        while not stop.wait(0.005):
            began = time.monotonic()
            was_serving &= is_serving(health)
            seconds.append(time.monotonic() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield seconds
    finally:
        stop.set()
        asking.join(PATIENCE)
    assert was_serving
    assert seconds, "it was not answered once"


def gauge(process: Process, name: str) -> float:
    return process.metrics()[f'dragoman_{name}{{model="en-pt"}}']


def hold_all_rows(process: Process, wedge: Path, send: Callable[[], Any]) -> list[Any]:
    """Requests of which the last two hold all rows, in a lane that stands still. Two may be over
    before they are seen: then two others are sent."""
    calls: list[Any] = []

    def are_over() -> bool:
        return all(call.done() for call in calls)

    while True:
        calls += [send(), send()]
        wait_until(lambda: gauge(process, "row_use_ratio") == 1 or are_over(), "rows in use")
        wedge.touch()
        wait_until(
            lambda: gauge(process, "engine_heartbeat_age_seconds") > 0.2 or are_over(),
            "a lane that stands still",
        )
        if gauge(process, "row_use_ratio") == 1:
            return calls
        wedge.unlink()


def test_beyond_the_queue_requests_are_refused_at_once_and_what_was_admitted_is_done(
    tmp_path: Path,
) -> None:
    """The server is a process of its own: a thousand calls at once keep their client busy."""
    wedge = tmp_path / "wedge"
    flags = (*SMALL, "--max-waiting-requests", str(QUEUE), "--stall", "600")
    long = pb.TranslateRequest(texts=["Hello."] * 4, options=LONG)
    with (
        started(tmp_path, *flags, wedge=wedge) as process,
        process.connected() as (stub, health),
        health_is_watched(health) as health_seconds,
    ):
        (expected,) = stub.Translate(REQUEST).translations
        holding = hold_all_rows(process, wedge, lambda: stub.Translate.future(long, PATIENCE))
        assert gauge(process, "row_use_ratio") == 1
        assert gauge(process, "waiting_requests") == 0

        calls = [stub.Translate.future(REQUEST, PATIENCE) for _ in range(1000)]
        wait_until(lambda: sum(call.done() for call in calls) >= 1000 - QUEUE, "refusals")
        assert gauge(process, "waiting_requests") == QUEUE
        refused = [call for call in calls if call.done()]
        assert len(refused) == 1000 - QUEUE
        for call in refused:
            found = refusal_of(call.exception())
            assert found.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert found.reason == "QUEUE_FULL"
            assert found.retry is not None
            assert 0.1 <= found.retry <= 30
        # Of a thousand at once, what the server says of each; on a machine that is shared, nearly
        # all of them. One by one, what the client sees.
        lines = [line for line in process.log if line.get("reason") == "QUEUE_FULL"]
        assert len(lines) == len(refused)
        assert all("source_tokens" not in line for line in lines), "their text was looked at"
        seconds = [line["seconds"] for line in lines]
        assert statistics.quantiles(seconds, n=20)[-1] < 0.1
        assert statistics.median(seconds_of_refusal(stub) for _ in range(20)) < 0.1
        assert statistics.median(health_seconds) < 0.5

        wedge.unlink()
        for call in calls:
            if call not in refused:
                assert list(call.result(PATIENCE).translations) == [expected]
        assert all(len(call.result(PATIENCE).translations) == 4 for call in holding)
        metrics = process.metrics()
        done = metrics['dragoman_requests_total{code="OK",rpc="Translate"}']
        assert done == 1 + len(holding) + QUEUE
        assert metrics['dragoman_rejected_total{reason="QUEUE_FULL"}'] == len(refused) + 20


def seconds_of_refusal(stub: TranslationServiceStub) -> float:
    began = time.monotonic()
    assert refusal(lambda: stub.Translate(REQUEST)).reason == "QUEUE_FULL"
    return time.monotonic() - began


def test_the_queue_is_bounded_by_tokens_too() -> None:
    limits = Limits(max_waiting_tokens=100)
    long = pb.TranslateRequest(texts=["One and two and three and four and five and six."] * 5)
    with serving(settings_for(engine=few_rows(1), limits=limits)) as running:
        with full(running) as holding:
            waiting = [running.stub.Translate.future(long, PATIENCE)]
            wait_until(lambda: running.engine.waiting_requests == 1)
            assert refusal(lambda: running.stub.Translate(long)).reason == "QUEUE_FULL"
            waiting.append(running.stub.Translate.future(REQUEST, PATIENCE))  # has room
            wait_until(lambda: running.engine.waiting_requests == 2)
        assert all(call.result(PATIENCE).translations for call in [*holding, *waiting])


def test_a_request_within_its_limits_is_taken_however_many_sentences_it_has() -> None:
    """Were it larger than the queue, it would be told to come back for ever."""
    sentences = 500
    limits = Limits(max_source_tokens=4 * sentences, max_waiting_tokens=100, max_waiting_requests=1)
    engine = few_rows(64, max_waiting_sentences=100)
    with serving(settings_for(engine=engine, limits=limits)) as running:
        (translation,) = running.translate("\n".join(["No."] * sentences))
        assert len(translation.segments) == sentences
        assert len(set(translation.text.split("\n"))) == 1
        running.wait_until_idle()


def test_the_retry_delay_grows_with_the_backlog() -> None:
    limits = Limits(max_waiting_requests=1)
    text = " ".join(["The quick brown fox jumps over the lazy dog again and again."] * 20)
    with serving(settings_for(engine=few_rows(1), limits=limits)) as running:
        teach_pace(running)
        raw = running.channel.unary_unary("/dragoman.v1.TranslationService/Translate")
        delays: list[float] = []
        for texts in ([text] * 2, [text] * 20):
            with full(running) as holding:
                waiting = running.stub.Translate.future(pb.TranslateRequest(texts=texts))
                wait_until(lambda: running.engine.waiting_requests == 1)
                found = refusal(lambda: running.stub.Translate(REQUEST)).retry
                assert found is not None
                assert refusal(lambda: raw(b"\xff")).reason == "QUEUE_FULL"  # and is not decoded
                delays.append(found)
                assert waiting.cancel()
            assert all(call.result(PATIENCE).translations for call in holding)
            running.wait_until_idle()
        assert 2 * delays[0] < delays[1] <= 30


@pytest.mark.parametrize(
    "limits",
    [Limits(max_calls=2), Limits(max_client_calls=2), Limits(max_streams=2)],
    ids=["of all", "of a client", "streams"],
)
def test_calls_at_a_time_are_limited_and_health_is_not(limits: Limits) -> None:
    request = pb.TranslateStreamRequest(text="Good morning.")
    with serving(settings_for(engine=few_rows(1), limits=limits)) as running:
        for _ in range(2):  # places are given back
            with held(running.engine):
                streams = [running.stub.TranslateStream(request, timeout=PATIENCE) for _ in "12"]
                wait_until(lambda: running.server.calls.under_way == 2)
                # On the same connection, which must not hold it back in silence.
                found = refusal(lambda: list(running.stub.TranslateStream(request)))
                assert (found.code, found.reason, found.retry) == (
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    "TOO_MANY_CALLS",
                    1.0,
                )
                assert running.is_healthy()
                if limits.max_streams == 2:
                    assert running.stub.ListModels(pb.ListModelsRequest()).models
                streams.pop().cancel()  # a place for one
                wait_until(lambda: running.server.calls.under_way == 1)
                streams.append(running.stub.TranslateStream(request, timeout=PATIENCE))
                wait_until(lambda: running.server.calls.under_way == 2)
                found = refusal(lambda: list(running.stub.TranslateStream(request)))
                assert found.reason == "TOO_MANY_CALLS"
            assert all([*stream][-1].translation.text for stream in streams)
            running.wait_until_idle()


def test_what_takes_long_with_a_giant_request_is_done_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Splitting, tokenizing, queueing and putting together; seconds of it, for the largest."""
    threads: dict[str, set[str]] = {}

    def spy(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def noted(*args: Any, **kwargs: Any) -> Any:
            threads.setdefault(name, set()).add(threading.current_thread().name)
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    for owner, name in (
        (Planner, "plan"),
        (Vocabulary, "encode_all"),
        (Vocabulary, "decode"),
        (Engine, "submit"),
        (responses, "translation"),
        (responses, "token_scores"),
    ):
        spy(owner, name)
    texts = ["Yes, no, yes, no."] * 300
    with serving(settings_for(engine=few_rows(64))) as running:
        options = pb.Options(max_tokens=1, token_scores=True)
        assert len(running.translate(*texts, options=options)) == 300
        assert "server" not in threads["submit"]
        *_, last = running.stub.TranslateStream(
            pb.TranslateStreamRequest(text="\n".join(texts), options=pb.Options(max_tokens=1))
        )
        assert len(last.translation.segments) == 300
        pairs = [pb.ScorePair(source=text, target="Sim.") for text in texts]
        scored = running.stub.Score(pb.ScoreRequest(pairs=pairs, token_scores=True))
        assert len(scored.scores) == 300
        assert threads.keys() == {
            *("plan", "encode_all", "decode", "submit", "translation", "token_scores")
        }
        for name in threads.keys() - {"decode", "submit"}:  # of a stream, a few at a time
            assert "server" not in threads[name], name
        # A small one is not worth a thread.
        threads.clear()
        running.translate("Yes.")
        assert set().union(*threads.values()) == {"server"}
