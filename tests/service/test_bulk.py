"""A stream of items: each is answered for itself, and no more are under way than the window."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.settings import Limits
from dragoman_server.text.plan import Part, Planner, PlanOptions
from support import MODEL
from support.service_running import (
    LONG,
    PATIENCE,
    Running,
    facts_of,
    few_rows,
    full,
    held,
    read_status,
    refusal_of,
    serving,
    settings_for,
    teach_pace,
    variant,
    wait_until,
)

WINDOW = 8
LIMITS = Limits(bulk_window=WINDOW, max_waiting_requests=8)
Item = pb.TranslateBulkRequest


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    second = variant(tmp_path_factory.mktemp("bundles"), "en-de", target="de")
    settings = settings_for(MODEL, second, engine=few_rows(4, max_beam=2), limits=LIMITS)
    with serving(settings) as running:
        yield running


class Feed:
    """Items that are sent one by one, for as long as a test wants."""

    def __init__(self) -> None:
        self._items: queue.Queue[Item | None] = queue.Queue()

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.get, None)

    def send(self, *items: Item) -> None:
        for item in items:
            self._items.put(item)

    def end(self) -> None:
        self._items.put(None)


@pytest.fixture
def feed() -> Iterator[Feed]:
    feed = Feed()
    try:
        yield feed
    finally:
        feed.end()


def by_id(answers: Any) -> dict[str, pb.TranslateBulkResponse]:
    found: dict[str, pb.TranslateBulkResponse] = {}
    for answer in answers:
        assert answer.id not in found
        found[answer.id] = answer
    return found


def test_every_item_is_answered_as_a_plain_call_would_be(running: Running) -> None:
    """However long each takes, and with options of its own."""
    items = [
        Item(
            id=f"item {number}",
            text=f"I have {number} books.\nAnd you?",
            model="en-pt",
            options=pb.Options(min_tokens=60 if number % 5 == 0 else 0, beam_size=1 + number % 2),
        )
        for number in range(20)
    ]
    answers = list(running.stub.TranslateBulk(iter(items), timeout=PATIENCE))
    found = by_id(answers)
    assert found.keys() == {item.id for item in items}
    for item in items:
        (plain,) = running.translate(item.text, options=item.options, model="en-pt")
        assert found[item.id].translation == plain
    assert [answer.id for answer in answers] != [item.id for item in items], "short ones waited"
    running.wait_until_idle()


def test_an_item_takes_over_what_it_does_not_say(running: Running) -> None:
    beam = pb.Options(beam_size=2, alternatives=2)
    items = [
        Item(id="1", text="Hello.", source_language="en", target_language="de", options=beam),
        Item(id="2", text="Hello."),
        Item(id="3", text="Hello.", model="en-pt", options=pb.Options()),
        Item(id="4", text="Hello."),
    ]
    found = by_id(running.stub.TranslateBulk(iter(items)))
    models = [found[number].translation.model for number in "1234"]
    assert models == ["en-de", "en-de", "en-pt", "en-pt"]
    alternatives = [len(found[n].translation.segments[0].alternatives) for n in "1234"]
    assert alternatives == [2, 2, 0, 0]


def test_an_item_that_fails_does_not_disturb_the_others(running: Running) -> None:
    whole = pb.Options(overlong=pb.OVERLONG_POLICY_ERROR)
    good: dict[str, Any] = {"text": "Hello.", "model": "en-pt"}
    items = [
        Item(id="good", **good),
        Item(id="model", **good | {"model": "nowhere"}),
        Item(id="languages", text="Hello.", source_language="pt", target_language="en"),
        Item(id="option", **good, options=pb.Options(beam_size=99)),
        Item(id="long", **good | {"text": "word " * 300}, options=whole),
        Item(id="also good", **good, options=pb.Options()),
        Item(id="empty", **good | {"text": ""}),
        Item(id="", **good),
    ]
    found = by_id(running.stub.TranslateBulk(iter(items)))
    failed = {
        name: (error.code, error.reason, error.fields)
        for name, answer in found.items()
        if answer.HasField("error") and (error := read_status(answer.error))
    }
    assert failed == {
        "model": (StatusCode.NOT_FOUND, "UNKNOWN_MODEL", ()),
        "languages": (StatusCode.NOT_FOUND, "UNKNOWN_LANGUAGES", ()),
        "option": (StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", ("options.beam_size",)),
        "long": (StatusCode.INVALID_ARGUMENT, "SENTENCE_TOO_LONG", ("text",)),
    }
    (plain,) = running.translate("Hello.", model="en-pt")
    for name in ("good", "also good", ""):
        assert found[name].translation == plain
    assert found["empty"].translation.text == ""
    assert running.metric('dragoman_requests_total{code="OK",rpc="TranslateBulk"}') >= 1


def test_items_of_one_id_are_each_answered(running: Running) -> None:
    items = [Item(id="same", text=text, model="en-pt") for text in ("Yes.", "No.", "Yes.")]
    texts = [answer.translation.text for answer in running.stub.TranslateBulk(iter(items))]
    assert len(texts) == 3
    assert len(set(texts)) == 2


def test_a_stream_that_ends_badly_answers_first_what_it_read(running: Running) -> None:
    good = Item(id="1", text="Hello.", model="en-pt").SerializeToString()
    send = running.channel.stream_stream("/dragoman.v1.TranslationService/TranslateBulk")
    answers = send(iter([good, b"\xff"]), timeout=PATIENCE)
    assert pb.TranslateBulkResponse.FromString(next(answers)).translation.text
    with pytest.raises(grpc.RpcError) as error:
        next(answers)
    assert refusal_of(error.value).reason == "MALFORMED"
    running.wait_until_idle()


def test_no_more_is_read_than_the_window_while_nothing_is_answered(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with held(running.engine) as gate:
        items = [Item(id=str(n), text="Hello.", model="en-pt") for n in range(30)]
        call = running.stub.TranslateBulk(iter(items), timeout=PATIENCE)
        gate.wait()
        # The server reads on until the window is full, and then not one more.
        wait_until(lambda: items_read(running) == WINDOW)
        for _ in range(50):
            assert running.is_healthy()
        assert items_read(running) == WINDOW
    assert len(by_id(call)) == 30
    running.wait_until_idle()
    assert facts_of(caplog.records)[-1]["items"] == 30


def items_read(running: Running) -> int:
    """Items whose answers the server owes: they hold tasks on its event loop."""

    def count() -> int:
        names = (getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks())
        return sum(name == "Bulk._item" for name in names)

    return int(running.on_loop(count))


def test_a_client_that_does_not_read_its_answers_holds_its_own_stream_back(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers fill the connection's buffers; then no more are sent, and no more items read."""
    read = 0
    plan = Planner.plan

    def count(self: Planner, text: str, options: PlanOptions, *more: Any) -> list[Part]:
        nonlocal read
        read += 1
        return plan(self, text, options, *more)

    monkeypatch.setattr(Planner, "plan", count)
    items, text = 300, "1234567890 " * 1000  # with nothing in it to translate
    small = (("grpc.http2.lookahead_bytes", 65_536), ("grpc.http2.bdp_probe", 0))
    stub = type(running.stub)(running.connect(*small))
    feed = iter([Item(id=str(n), text=text, model="en-pt") for n in range(items)])
    call = stub.TranslateBulk(feed, timeout=PATIENCE)
    wait_until(lambda: read >= WINDOW)
    seen = [-1, 0]
    while seen[-1] != seen[-2]:  # until it comes to a stand
        for _ in range(50):
            assert running.is_healthy()
        seen.append(read)
    assert read < items / 3
    assert running.translate("Hello.", model="en-pt"), "others are held back too"
    answers = by_id(call)
    assert len(answers) == items
    assert {answer.translation.text for answer in answers.values()} == {text}
    assert read == items + 1
    running.wait_until_idle()


def test_bulk_leaves_half_of_the_queue_to_those_who_can_not_wait(running: Running) -> None:
    with full(running) as holding:
        bulk = [
            running.stub.TranslateBulk(
                iter([Item(id=str(n), text="Hello.", model="en-pt") for n in range(WINDOW)])
            )
            for _ in range(3)
        ]
        wait_until(lambda: items_read(running) == 3 * WINDOW)
        for _ in range(20):
            assert running.is_healthy()
        assert running.engine.waiting_requests == LIMITS.max_waiting_requests // 2 + 1
        request = pb.TranslateRequest(texts=["Good day."], model="en-pt")
        plain = [running.stub.Translate.future(request, timeout=PATIENCE) for _ in range(3)]
        wait_until(lambda: running.engine.waiting_requests == LIMITS.max_waiting_requests)
    assert all(call.result(PATIENCE).translations for call in [*plain, *holding])
    assert all(len(by_id(stream)) == WINDOW for stream in bulk)
    running.wait_until_idle()


def test_bulk_leaves_half_of_the_tokens_too_and_does_not_count_in_deadlines() -> None:
    limits = Limits(max_waiting_tokens=400)
    text = " ".join(["The quick brown fox jumps over the lazy dog again and again."] * 5)
    with serving(settings_for(engine=few_rows(1), limits=limits)) as running:
        teach_pace(running)
        with full(running) as holding:
            stream = running.stub.TranslateBulk(
                iter([Item(id=str(n), text=text) for n in range(8)]), timeout=10 * PATIENCE
            )
            wait_until(lambda: items_read(running) == 8)
            wait_until(lambda: running.engine.waiting_tokens > 200)
            assert running.engine.waiting_tokens < 400
            admission = next(iter(running.server.models)).dispatcher.admission
            assert running.on_loop(lambda: admission.expected_wait(1)) == 0
            assert running.on_loop(lambda: admission.expected_wait(0)) > 0
            first = running.stub.Translate.future(
                pb.TranslateRequest(texts=["Hello."]), timeout=PATIENCE
            )
            wait_until(lambda: running.engine.waiting_requests > 0)
        assert first.result(PATIENCE).translations
        assert all(call.result(PATIENCE).translations for call in holding)
        assert len(by_id(stream)) == 8


def test_an_idle_stream_ends_when_the_server_drains(feed: Feed) -> None:
    with serving(settings_for()) as running:
        call = running.stub.TranslateBulk(iter(feed), timeout=PATIENCE)
        feed.send(Item(id="1", text="Hello."))
        assert next(call).id == "1"
        running.stop()
        with pytest.raises(grpc.RpcError) as error:
            next(call)
        found = refusal_of(error.value)
        assert (found.code, found.reason) == (StatusCode.UNAVAILABLE, "DRAINING")


def test_a_stream_that_drains_answers_what_it_read(feed: Feed) -> None:
    with serving(settings_for(engine=few_rows(2))) as running:
        with held(running.engine) as gate:
            call = running.stub.TranslateBulk(iter(feed), timeout=PATIENCE)
            feed.send(*(Item(id=str(n), text="Hello.") for n in range(10)))
            gate.wait()
            wait_until(lambda: items_read(running) == 10)
            running.stop()
            wait_until(lambda: not running.is_healthy(), "the drain")
            feed.send(Item(id="late", text="Hello."))
        answers = [next(call) for _ in range(10)]
        assert all(answer.translation.text for answer in answers)
        assert by_id(answers).keys() == {str(n) for n in range(10)}
        with pytest.raises(grpc.RpcError) as error:
            next(call)
        assert refusal_of(error.value).reason == "DRAINING"


def test_an_engine_that_is_lost_fails_items_that_wait_for_room(feed: Feed) -> None:
    """They are in no queue yet, so the engine itself can't tell them."""
    settings = settings_for(engine=few_rows(1), limits=LIMITS, grace=0.3)
    with serving(settings) as running, full(running):
        call = running.stub.TranslateBulk(iter(feed), timeout=PATIENCE)
        feed.send(*(Item(id=str(n), text="Hello.") for n in range(WINDOW)))
        wait_until(lambda: items_read(running) == WINDOW)
        assert running.engine.waiting_requests < WINDOW
        running.stop()
        answers = [next(call) for _ in range(WINDOW)]
        assert {read_status(answer.error).reason for answer in answers} == {"DRAINING"}
        with pytest.raises(grpc.RpcError) as error:
            next(call)
        assert refusal_of(error.value).reason == "DRAINING"


def test_a_stream_that_its_client_leaves_leaves_nothing(running: Running) -> None:
    before = threading.active_count()
    for _ in range(5):
        items = (Item(id=str(n), text="Hello.", model="en-pt", options=LONG) for n in range(100))
        call = running.stub.TranslateBulk(items, timeout=PATIENCE)
        wait_until(lambda: running.engine.running > 0)
        call.cancel()
        running.wait_until_idle()
        assert items_read(running) == 0
    wait_until(lambda: threading.active_count() <= before + 1)


def test_an_items_time_is_its_own(running: Running, feed: Feed) -> None:
    """Not that of its stream, which may have been open for hours."""
    call = running.stub.TranslateBulk(iter(feed), timeout=PATIENCE)
    feed.send(Item(id="1", text="Hello.", model="en-pt", options=LONG))
    assert next(call).translation.target_tokens == 255
    began = time.monotonic_ns()
    feed.send(Item(id="2", text="Hello.", model="en-pt", options=pb.Options(timing=True)))
    timing = next(call).translation.timing
    assert 0 < timing.total.ToNanoseconds() <= time.monotonic_ns() - began
    parts = (timing.prepare, timing.queue, timing.first_token, timing.decode)
    assert 0 < sum(part.ToNanoseconds() for part in parts) <= timing.total.ToNanoseconds()
    assert running.metric('dragoman_requests_in_flight{rpc="TranslateBulk"}') == 1
