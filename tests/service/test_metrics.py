"""What an operator watches: all series from the start, the right numbers, and never more series."""

import re
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any

import grpc
import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Report
from dragoman_server.engine.lane import GoOn, Lane
from dragoman_server.service.telemetry.metrics import OUTCOMES, REJECTIONS
from support import MODEL
from support.service_running import (
    LONG,
    PATIENCE,
    Running,
    few_rows,
    full,
    refusal,
    serving,
    settings_for,
    variant,
    wait_until,
)

MADE_UP = 10_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    second = variant(tmp_path_factory.mktemp("bundles"), "second", target="pt-BR")
    with serving(settings_for(MODEL, second, engine=few_rows(2))) as running:
        yield running


def made_up(number: int) -> pb.TranslateBulkRequest:
    """No two are alike, and none is known."""
    fields: tuple[dict[str, Any], ...] = (
        {"model": f"model-{number}"},
        {"source_language": f"x-{number}", "target_language": f"x-{number}"},
        {"source_language": "en", "target_language": f"pt-x-{number:08d}", "model": f"m{number}"},
        {"source_language": f"{number:05d}"},
    )
    return pb.TranslateBulkRequest(id=str(number), text="Hello.", **fields[number % 4])


def test_series_stay_the_same_under_ten_thousand_made_up_names(running: Running) -> None:
    before = running.metrics().keys()
    # Without stubs, which would take longer than all else.
    send = running.channel.stream_stream("/dragoman.v1.TranslationService/TranslateBulk")
    answers = list(send(made_up(number).SerializeToString() for number in range(MADE_UP)))
    assert len(answers) == MADE_UP
    for answer in answers[:: MADE_UP // 100]:
        assert pb.TranslateBulkResponse.FromString(answer).HasField("error")
    for number in range(100):
        item = made_up(number)
        refusal(partial(running.stub.GetModel, pb.GetModelRequest(model=f"model-{item.id}")))
        metadata = [("x-request-id", f"id-{number}"), (f"x-{number}", "y")]
        request = pb.TranslateRequest(texts=["a"], model=f"m{number}")
        refusal(partial(running.stub.Translate, request, metadata=metadata))
        with pytest.raises(grpc.RpcError):
            running.channel.unary_unary(f"/dragoman.v1.TranslationService/Call{number}")(b"")
    assert running.translate("Hello.", model="second")
    assert running.metrics().keys() == before
    assert len(before) < 700


def test_every_series_is_there_before_the_first_call() -> None:
    with serving(settings_for(engine=few_rows(1))) as running:
        found = running.metrics()
        assert all(name.startswith("dragoman_") for name in found)
        rpcs = ("Translate", "TranslateStream", "TranslateBulk", "Score", "ListModels", "GetModel")
        for rpc in rpcs:
            for code in grpc.StatusCode:
                assert found[f'dragoman_requests_total{{code="{code.name}",rpc="{rpc}"}}'] == 0
        for reason in REJECTIONS:
            assert found[f'dragoman_rejected_total{{reason="{reason}"}}'] == 0
        for outcome in OUTCOMES:
            assert found[f'dragoman_sentences_total{{model="en-pt",outcome="{outcome}"}}'] == 0
        assert found["dragoman_ready"] == 1
        assert found['dragoman_rows{model="en-pt"}'] == 2
        assert found['dragoman_cache_bytes{model="en-pt"}'] == running.engine.buffer_bytes > 0
        (info,) = (name for name in found if name.startswith("dragoman_model_info"))
        assert 'precision="int8"' in info


def test_names_have_base_units_and_a_help(running: Running) -> None:
    address = running.server.metrics_address
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as response:
        lines = response.read().decode().splitlines()
    types = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE"))
    helps = {line.split()[2] for line in lines if line.startswith("# HELP") and line.split()[3:]}
    assert types.keys() == helps
    for name, kind in types.items():
        assert (kind == "counter") == name.endswith("_total"), name
        assert not re.search(r"_(ms|millis|perc|percent|mb|kb)(_|$)", name)
    seconds = [name for name in types if re.search(r"duration|_wait_|time_|lag|_age", name)]
    assert len(seconds) >= 7
    assert all(re.search("seconds$", name) for name in seconds)


def test_steps_are_counted_while_a_sentence_is_still_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = Lane.step

    def slow(lane: Lane, report: Report, go_on: GoOn) -> None:
        time.sleep(0.01)
        step(lane, report, go_on)

    monkeypatch.setattr(Lane, "step", slow)
    with serving(settings_for(engine=few_rows(1))) as running:
        call = running.stub.Translate.future(
            pb.TranslateRequest(texts=["Hello."], options=LONG), PATIENCE
        )
        steps = 'dragoman_step_rows_count{model="en-pt"}'
        wait_until(lambda: running.metric(steps) > 0, "steps that are counted")
        assert not call.done()
        call.cancel()


def test_the_numbers_are_those_of_the_calls() -> None:
    with serving(settings_for(engine=few_rows(4))) as running:
        text = "Good morning.\nHow are you?"
        translations = [*running.translate(text, text), *running.translate("Yes.")]
        found = running.metrics()

        def value(name: str, **labels: str) -> float:
            inside = ",".join(f'{key}="{text}"' for key, text in sorted(labels.items()))
            return found[f"dragoman_{name}{{{inside}}}" if labels else f"dragoman_{name}"]

        model = {"model": "en-pt"}
        sentences = sum(len(translation.segments) for translation in translations)
        assert sentences == 5
        assert value("requests_total", rpc="Translate", code="OK") == 2
        assert value("request_duration_seconds_count", rpc="Translate") == 2
        assert value("requests_in_flight", rpc="Translate") == 0
        assert value("sentences_total", **model, outcome="end") == sentences
        # With the end token of each.
        source = sum(translation.source_tokens for translation in translations) + sentences
        target = sum(translation.target_tokens for translation in translations) + sentences
        assert value("source_tokens_total", **model) == source
        assert value("target_tokens_total", **model) == target
        for name in ("queue_wait_seconds", "time_to_first_token_seconds", "time_per_token_seconds"):
            assert value(f"{name}_count", **model) == sentences
        steps = value("step_rows_count", **model)
        assert value("step_duration_seconds_count", **model) == steps > 0
        assert value("step_rows_sum", **model) == target  # a row of a step is a token
        assert 1 <= value("encode_duration_seconds_count", **model) <= sentences
        assert value("engine_faults_total", **model) == value("nan_rows_total", **model) == 0


def test_gauges_show_what_waits_and_what_runs(running: Running) -> None:
    model = '{model="en-pt"}'
    with full(running) as holding:
        waiting = running.stub.Translate.future(
            pb.TranslateRequest(texts=["One.\nTwo."], model="en-pt"), timeout=PATIENCE
        )
        while running.metric(f"dragoman_waiting_requests{model}") != 1:
            pass
        found = running.metrics()
        assert found[f"dragoman_waiting_sentences{model}"] == 2
        assert found[f"dragoman_waiting_tokens{model}"] >= 4
        assert found[f"dragoman_running_sentences{model}"] == 3
        assert found[f"dragoman_row_use_ratio{model}"] == 1
        assert found[f"dragoman_engine_heartbeat_age_seconds{model}"] > 0
        assert found['dragoman_requests_in_flight{rpc="Translate"}'] == 4
        assert found['dragoman_row_use_ratio{model="second"}'] == 0
    assert all(call.result(PATIENCE) for call in (*holding, waiting))
    running.wait_until_idle()
    wait_until(  # the lane's last turn may not be over yet
        lambda: running.metric(f"dragoman_engine_heartbeat_age_seconds{model}") == 0
    )


def test_the_event_loops_lag_is_measured(running: Running) -> None:
    count = "dragoman_event_loop_lag_seconds_count"
    before = running.metric(count)
    while running.metric(count) < before + 2:
        pass


def test_metrics_may_be_served_nowhere() -> None:
    with serving(settings_for(engine=few_rows(1), metrics="")) as running:
        assert running.server.metrics_address == ""
        assert running.translate("Hello.")
