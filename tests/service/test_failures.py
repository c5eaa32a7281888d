"""Calls that fail for no fault of theirs: deadlines, a server's phases, mistakes of ours."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc import StatusCode

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Report
from dragoman_server.grpc_api import calls
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.results import StepResult
from dragoman_server.service import responses
from dragoman_server.service.models.choice import Models
from dragoman_server.service.settings import Limits
from support import MODEL
from support.service_errors import WORDS, assert_nothing_is_left, expect, raw, translate
from support.service_running import (
    LONG,
    PATIENCE,
    Running,
    facts_of,
    few_rows,
    full,
    read_status,
    refusal,
    refusal_of,
    reports_of,
    serving,
    settings_for,
    teach_pace,
    variant,
    wait_until,
)


def test_a_deadline_that_passes_on_the_server_is_exceeded(running: Running) -> None:
    with full(running) as holding:
        call = running.stub.Translate.future(
            pb.TranslateRequest(texts=["Hello."], model="en-pt"), timeout=0.2
        )
        with pytest.raises(grpc.RpcError):
            call.result(PATIENCE)
        assert call.code() is StatusCode.DEADLINE_EXCEEDED
    assert all(call.result(PATIENCE) for call in holding)
    running.wait_until_idle()
    ended = 'dragoman_requests_total{code="DEADLINE_EXCEEDED",rpc="Translate"}'
    wait_until(lambda: running.metric(ended) >= 1)
    expired, cancelled = (
        running.metric(f'dragoman_sentences_total{{model="en-pt",outcome="{outcome}"}}')
        for outcome in ("expired", "cancelled")
    )
    assert expired + cancelled >= 1


def test_a_deadline_above_the_servers_is_the_servers() -> None:
    limits = Limits(max_deadline=1.0)
    request = pb.TranslateRequest(texts=["Good day."] * 200, options=LONG)
    with serving(settings_for(engine=few_rows(2), limits=limits)) as running:
        for timeout in (None, 10.0**9):
            found = refusal(partial(running.stub.Translate, request, timeout=timeout))
            expect(found, StatusCode.DEADLINE_EXCEEDED, "DEADLINE_PASSED")
        running.wait_until_idle()
        expired = 'dragoman_sentences_total{model="en-pt",outcome="expired"}'
        assert running.metric(expired) >= 300


def test_the_servers_deadline_holds_where_the_engine_does_not_notice() -> None:
    limits = Limits(max_deadline=1.0)
    with serving(settings_for(engine=few_rows(2), limits=limits)) as running:
        with full(running) as holding:
            for call in holding:
                with pytest.raises(grpc.RpcError) as error:
                    call.result(PATIENCE)
                expect(refusal_of(error.value), StatusCode.DEADLINE_EXCEEDED, "DEADLINE_PASSED")
        running.wait_until_idle()


def test_a_deadline_that_the_queue_is_too_long_for_is_refused_at_once() -> None:
    text = " ".join(["The quick brown fox jumps over the lazy dog again and again."] * 40)
    with serving(settings_for(engine=few_rows(1))) as running:
        teach_pace(running)
        with full(running) as holding:
            waiting = running.stub.Translate.future(
                pb.TranslateRequest(texts=[text] * 20), PATIENCE * 100
            )
            wait_until(lambda: running.engine.waiting_requests == 1)
            request = pb.TranslateRequest(texts=["Hello."])
            found = refusal(lambda: running.stub.Translate(request, timeout=0.5))
            expect(found, StatusCode.DEADLINE_EXCEEDED, "DEADLINE_UNREACHABLE")
            assert running.engine.waiting_requests == 1, "it was queued"
            patient = running.stub.Translate.future(request, PATIENCE * 100)
            wait_until(lambda: running.engine.waiting_requests == 2)
            waiting.cancel()
        assert all(call.result(PATIENCE).translations for call in [*holding, patient])
        reason = 'dragoman_rejected_total{reason="DEADLINE_UNREACHABLE"}'
        assert running.metric(reason) == 1


def test_a_call_that_its_client_cancels_ends_as_cancelled(running: Running) -> None:
    cancelled = 'dragoman_requests_total{code="CANCELLED",rpc="Translate"}'
    before = running.metric(cancelled)
    with full(running) as holding:
        call = running.stub.Translate.future(pb.TranslateRequest(texts=["Hello."], model="en-pt"))
        wait_until(lambda: running.engine.waiting_requests == 1)
        assert call.cancel()
        wait_until(lambda: running.engine.waiting_requests == 0)
    assert call.code() is StatusCode.CANCELLED
    assert all(call.result(PATIENCE) for call in holding)
    running.wait_until_idle()
    assert running.metric(cancelled) == before + 1


@pytest.fixture
def bundle_that_loads_slowly(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Its manifest is a pipe: it can't be read before something is written there."""
    path = variant(tmp_path, "slow")
    manifest = (path / "manifest.json").read_text()
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")
    written = threading.Event()

    def go_on() -> None:
        if not written.is_set():
            written.set()
            (path / "manifest.json").write_text(manifest)

    try:
        yield path, go_on
    finally:
        go_on()


def test_a_server_that_is_starting_is_unavailable(
    bundle_that_loads_slowly: tuple[Path, Callable[[], None]],
) -> None:
    slow, go_on = bundle_that_loads_slowly
    settings = settings_for(slow, MODEL, skip_refused=True)
    with serving(settings, until_ready=False) as running:
        for call in (
            lambda: running.stub.Translate(pb.TranslateRequest(texts=["a"]), wait_for_ready=True),
            lambda: list(running.stub.TranslateStream(pb.TranslateStreamRequest(text="a"))),
            lambda: list(running.stub.TranslateBulk(iter([]))),
            lambda: running.stub.ListModels(pb.ListModelsRequest()),
        ):
            found = expect(refusal(call), StatusCode.UNAVAILABLE, "STARTING")
            assert found.retry == 1.0
        assert not running.is_healthy()
        assert running.metric("dragoman_ready") == 0
        go_on()  # a pipe is no plain file, so this bundle is refused, and the other served
        wait_until(running.is_healthy, "a server that is ready")
        assert running.metric("dragoman_ready") == 1
        assert running.metric('dragoman_rejected_total{reason="STARTING"}') == 4
        assert running.translate("Hello.")


def test_a_server_that_drains_is_unavailable_for_new_calls_and_finishes_the_others() -> None:
    settings = settings_for(engine=few_rows(2))
    with serving(settings) as running:
        with full(running) as holding:
            running.stop()
            wait_until(lambda: not running.is_healthy(), "the drain")
            found = refusal(lambda: running.stub.Translate(pb.TranslateRequest(texts=["a"])))
            expect(found, StatusCode.UNAVAILABLE, "DRAINING")
            assert running.metric("dragoman_ready") == 0
        for call in holding:
            (translation,) = call.result(PATIENCE).translations
            assert translation.target_tokens == 255


def test_what_is_not_done_when_the_grace_is_over_is_told_so() -> None:
    settings = settings_for(engine=few_rows(2), grace=0.3)
    with serving(settings) as running, full(running) as holding:
        running.stop()
        for call in holding:
            expect(refusal_of(call.exception(PATIENCE)), StatusCode.UNAVAILABLE, "DRAINING")


def test_an_engine_that_fails_is_our_fault_and_the_next_call_is_fine(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    graphs = running.engine.lanes[0].graphs
    (expected,) = running.translate("Hello.", model="en-pt")

    def interrupt(report: Report) -> None:
        """onnxruntime fails the call that is running, and the ones after it until this is undone"""
        graphs.interrupt(not report.faults)

    with reports_of(running.engine) as reports:
        reports.at_report = interrupt
        found = refusal(translate(running, options=pb.Options(min_tokens=50)))
    expect(found, StatusCode.INTERNAL, "ENGINE_FAULT")
    assert found.metadata.keys() == {"request_id"}
    wait_until(lambda: not running.engine.running)
    graphs.interrupt(False)
    assert running.translate("Hello.", model="en-pt") == [expected]
    assert running.metric('dragoman_engine_faults_total{model="en-pt"}') == 1
    assert "a step of lane 0 failed" in caplog.text


def test_a_sentence_that_is_poisoned_is_our_fault_and_the_next_is_fine(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = running.engine.lanes[0].graphs
    (expected,) = running.translate("Hello.", model="en-pt")

    def poison(*args: Any, **kwargs: Any) -> StepResult:
        """What a sum over a row with something in it that is no number comes to."""
        result = Graphs.step(graphs, *args, **kwargs)
        result.row_sums.fill(np.nan)
        return result

    with monkeypatch.context() as patched:
        patched.setattr(graphs, "step", poison)
        found = refusal(translate(running))
    expect(found, StatusCode.INTERNAL, "POISONED")
    assert found.metadata.keys() == {"request_id"}
    assert running.translate("Hello.", model="en-pt") == [expected]
    assert running.metric('dragoman_nan_rows_total{model="en-pt"}') == 1


@pytest.mark.parametrize("rpc", ["Translate", "TranslateStream", "TranslateBulk", "ListModels"])
def test_a_mistake_of_ours_says_nothing_but_the_request_id(
    running: Running, rpc: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_an_error(*args: object) -> None:
        raise RuntimeError(f"{WORDS} in /etc/passwd")

    # Handlers were bound when the server began, but not what they use.
    monkeypatch.setattr(Models, "find", raise_an_error)
    monkeypatch.setattr(responses, "describe", raise_an_error)
    if rpc == "TranslateBulk":
        (answer,) = running.stub.TranslateBulk(iter([pb.TranslateBulkRequest(id="1", text="a")]))
        found = read_status(answer.error)
    else:
        call = {
            "Translate": translate(running),
            "TranslateStream": lambda: list(
                running.stub.TranslateStream(pb.TranslateStreamRequest(text="a"))
            ),
            "ListModels": lambda: running.stub.ListModels(pb.ListModelsRequest()),
        }[rpc]
        found = refusal(call)
    expect(found, StatusCode.INTERNAL, "INTERNAL")
    assert found.metadata.keys() == {"request_id"}
    errors = [vars(record) for record in caplog.records if record.levelname == "ERROR"]
    assert found.metadata["request_id"] in {each["facts"]["request_id"] for each in errors}


@pytest.mark.parametrize("rpc", ["Translate", "TranslateStream", "TranslateBulk", "Score"])
def test_a_mistake_of_ours_in_reading_a_message_ends_the_call_too(
    running: Running, rpc: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_an_error(*args: object) -> None:
        raise RuntimeError(WORDS)

    monkeypatch.setattr(calls, "decode", raise_an_error)
    found = refusal(raw(running, rpc, b""))
    expect(found, StatusCode.INTERNAL, "INTERNAL")


def test_the_request_id_is_the_clients_where_it_is_fit_for_a_log(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    request = pb.TranslateRequest(texts=["Hello."], model="en-pt")
    for given, taken in (("abc-1.2_3", True), ("x" * 65, False), ("a b", False), ("", False)):
        _, call = running.stub.Translate.with_call(request, metadata=[("x-request-id", given)])
        used = dict(call.trailing_metadata())["x-request-id"]
        assert (used == given) == taken
        assert facts_of(caplog.records)[-1]["request_id"] == used


def test_nothing_is_left_after_all_these(running: Running) -> None:
    assert_nothing_is_left(running)
