"""A text that is sent as it grows; and what is left when nobody wants it any more: nothing."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.engine.core import Failure
from support import SUPPORT
from support.service_running import (
    CALLS,
    LONG,
    PATIENCE,
    Reports,
    Running,
    facts_of,
    held,
    reports_of,
    wait_until,
)

PARAGRAPH = (
    "\tDear friend,\r\n\n“How are you?” he asked.  I paid $1,250.50 on 12/03/2024!\n"
    "See https://example.org/a?b=c&d=é or write to jane.doe+x@example.com 🎉🇵🇹.\n"
    "\n   \n- One\n- Two\n"
)
KEPT = ("https://example.org/a?b=c&d=é", "jane.doe+x@example.com", "🎉🇵🇹")
FOREVER = "\n".join(["The sun is shining over the mountains."] * 100)
"""With LONG, many seconds of work."""


def stream(running: Running, text: str, **options: Any) -> Iterator[pb.TranslateStreamResponse]:
    request = pb.TranslateStreamRequest(text=text, options=pb.Options(**options))
    return running.stub.TranslateStream(request, timeout=PATIENCE)


@pytest.mark.parametrize(
    "options", [{}, {"beam_size": 4}, {"keep_untranslatable": False, "mend": False}]
)
@pytest.mark.parametrize(
    "text",
    [PARAGRAPH, "Good morning!", "A\nb\nc", "🎉", "", " \n\t", "Good.你好。12再见！Yes.再见"],
)
def test_deltas_concatenate_to_the_final_text_which_is_that_of_a_plain_call(
    running: Running, text: str, options: dict[str, Any]
) -> None:
    *deltas, last = stream(running, text, **options)
    assert all(event.delta for event in deltas), "an empty delta says nothing"
    assert "".join(event.delta for event in deltas) == last.translation.text
    (plain,) = running.translate(text, options=pb.Options(**options))
    assert last.translation == plain


def test_a_greedy_stream_comes_in_many_pieces(running: Running) -> None:
    events = list(stream(running, "My brother would rather read a book than watch television."))
    assert len(events) > 6


def test_a_text_without_words_comes_back_as_it_is(running: Running) -> None:
    for text in ("", "   ", "\n\n", "12:30", "🎉 🎉", "\u2028"):
        (translation,) = running.translate(text)
        assert translation.text == text
        assert translation.segments == []
        assert translation.finish_reason == pb.FINISH_REASON_END


def test_a_paragraph_keeps_its_structure_and_what_can_not_be_translated(running: Running) -> None:
    (found,) = running.translate(PARAGRAPH)
    for span in KEPT:
        assert found.text.count(span) == 1
    assert found.text.startswith("\t")
    assert [line.strip() == "" for line in found.text.splitlines()] == [
        line.strip() == "" for line in PARAGRAPH.splitlines()
    ]
    assert found.text.count("\r\n") == 1
    assert "\n\n   \n- " in found.text
    # What is between segments is as it was, and what is in them stands where they say.
    source_end = target_end = 0
    for segment in found.segments:
        between = PARAGRAPH[source_end : segment.source.start]
        assert found.text[target_end : segment.target.start] == between
        source_end, target_end = segment.source.end, segment.target.end
    assert found.text[target_end:] == PARAGRAPH[source_end:]


class Watch:
    """Sees when a handler ends, and what its lane does after that."""

    def __init__(self, reports: Reports, caplog: pytest.LogCaptureFixture) -> None:
        self.reports = reports
        self.cancelled_at: list[int] = []
        """Reports that there were when the engine was told."""
        self.ended_at: list[int] = []
        """And when the handler had ended."""
        engine = reports.engine
        self._cancel = engine.cancel
        engine.cancel = self._note_cancel  # type: ignore[method-assign]
        self._filter = logging.getLogger(CALLS)
        self._filter.addFilter(self._note_end)
        caplog.set_level(logging.INFO)

    def _note_cancel(self, request: int) -> None:
        self.cancelled_at.append(len(self.reports.all))
        self._cancel(request)

    def _note_end(self, record: logging.LogRecord) -> bool:
        self.ended_at.append(len(self.reports.all))
        return True

    def leave(self) -> None:
        self.reports.engine.cancel = self._cancel  # type: ignore[method-assign]
        self._filter.removeFilter(self._note_end)

    def check(self) -> None:
        """The rows are free with the turn after the one that was running."""
        (ended,) = self.ended_at
        assert self.cancelled_at, "the engine was not told"
        told = max(self.cancelled_at)  # of each request that the stream's sentences came in
        assert told <= ended, "the handler had ended, and the engine was not told"
        freed = [
            number
            for number, report in enumerate(self.reports.all)
            if any(answer.failure is Failure.CANCELLED for answer in report.answers)
        ]
        assert freed
        # What ran, ran for at most one step more. Reports come when their turn has ended.
        assert max(freed) <= told + 1


@pytest.fixture
def watch(running: Running, caplog: pytest.LogCaptureFixture) -> Iterator[Watch]:
    with reports_of(running.engine) as reports:
        watch = Watch(reports, caplog)
        try:
            yield watch
        finally:
            watch.leave()


def let_two_tokens_come(running: Running) -> Any:
    request = pb.TranslateStreamRequest(text=FOREVER, options=LONG)
    call = running.stub.TranslateStream(request, timeout=PATIENCE)
    assert next(call).delta
    assert next(call).delta
    assert running.engine.used_rows == 4
    return call


def test_a_stream_that_is_cancelled_frees_its_rows_within_a_step(
    running: Running, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    call = let_two_tokens_come(running)
    assert call.cancel()
    running.wait_until_idle()
    wait_until(lambda: bool(watch.ended_at))
    watch.check()
    assert call.code() is grpc.StatusCode.CANCELLED
    (facts,) = facts_of(caplog.records)
    assert (facts["code"], facts["reason"]) == ("CANCELLED", "CANCELLED")
    assert running.engine.waiting == 0


def test_a_client_that_is_killed_leaves_no_row_behind(running: Running, watch: Watch) -> None:
    script = SUPPORT / "service_abandoned.py"
    client = subprocess.Popen([sys.executable, script, running.server.address, FOREVER])
    try:
        watch.reports.wait_until(lambda: running.engine.used_rows == 4)
    finally:
        client.kill()  # it has no chance to say anything
        client.wait(PATIENCE)
    running.wait_until_idle()
    wait_until(lambda: bool(watch.ended_at))
    watch.check()


@pytest.mark.parametrize(
    "send",
    [
        lambda r: r.stub.Translate.future(pb.TranslateRequest(texts=[FOREVER], options=LONG)),
        lambda r: r.stub.TranslateStream(pb.TranslateStreamRequest(text=FOREVER, options=LONG)),
        lambda r: r.stub.TranslateBulk(
            iter([pb.TranslateBulkRequest(id=str(n), text=FOREVER, options=LONG) for n in range(9)])
        ),
        lambda r: r.stub.Score.future(
            pb.ScoreRequest(pairs=[pb.ScorePair(source="Hello.", target="Olá. " * 80)] * 500)
        ),
        lambda r: r.stub.Translate.future(
            pb.TranslateRequest(texts=["Hello there."] * 1000, options=LONG)
        ),
    ],
    ids=["Translate", "TranslateStream", "TranslateBulk", "Score", "queued in a thread"],
)
def test_nothing_is_left_of_a_call_that_is_cancelled_in_the_queue(
    running: Running, send: Callable[[Running], Any]
) -> None:
    """No row, no sentence that waits, no work in the dispatcher, no place among the calls."""
    with held(running.engine) as gate:
        first = running.stub.Translate.future(pb.TranslateRequest(texts=["Hello."]))
        gate.wait()
        call = send(running)
        wait_until(lambda: running.engine.waiting > 0, "something in the queue")
        call.cancel()
        wait_until(lambda: running.engine.waiting == 0, "an empty queue")
    assert first.result(PATIENCE).translations
    running.wait_until_idle()


def test_a_client_that_goes_while_it_is_written_to_is_no_mistake_of_ours(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """It reads nothing, so that an answer is always on its way; then it is gone."""
    caplog.set_level(logging.INFO)
    small = (("grpc.http2.lookahead_bytes", 65_536), ("grpc.http2.bdp_probe", 0))
    items = [pb.TranslateBulkRequest(id=str(n), text="1234567890 " * 1000) for n in range(100)]
    for _ in range(10):
        channel = running.connect(*small)
        call = TranslationServiceStub(channel).TranslateBulk(iter(items))
        assert next(call).id
        channel.close()
        running.wait_until_idle()
    assert {fact["code"] for fact in facts_of(caplog.records)} == {"CANCELLED"}
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing(running: Running) -> None:
    """Also while it is planned, or queued, in a thread."""
    tasks = running.tasks()
    for number in range(30):
        request = pb.TranslateRequest(texts=["A word."] * 300, options=LONG)
        call = running.stub.Translate.future(request)
        for _ in range(number):  # so long that it is anywhere in its life
            assert running.is_healthy()
        call.cancel()
    running.wait_until_idle()
    wait_until(lambda: running.tasks() <= tasks, "the end of all tasks")
    assert running.translate("Hello.")
