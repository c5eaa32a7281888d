"""What a translation says beside its text, and the options that shape it."""

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Report
from dragoman_server.service.settings import Limits
from support.engine_reports import Gate
from support.service_running import (
    PATIENCE,
    Running,
    few_rows,
    refusal,
    serving,
    settings_for,
    wait_until,
)

TWO = "Good morning, my friend.\nHow are you?"
MASKED = "Write to jane@example.com today."
CUT = pb.Options(max_tokens=2)
"""So short that the name in place of the address can't be in the translation."""


def test_each_segment_says_what_was_asked_for(running: Running) -> None:
    options = pb.Options(
        beam_size=3, alternatives=2, token_scores=True, alignment=True, timing=True
    )
    (found,) = running.translate(TWO, options=options)
    assert len(found.segments) == 2
    for segment in found.segments:
        text = found.text[segment.target.start : segment.target.end]
        assert len(segment.tokens) == segment.target_tokens + 1
        assert segment.tokens[-1].piece == "</s>"
        assert sum(t.log_prob for t in segment.tokens) == pytest.approx(segment.log_prob, abs=1e-5)
        assert segment.score == pytest.approx(segment.log_prob / (segment.target_tokens + 1))
        assert "".join(t.piece for t in segment.tokens[:-1]).replace("▁", " ").strip() == text
        first, second = segment.alternatives
        assert first.text == text
        assert (first.score, first.log_prob) == (segment.score, segment.log_prob)
        assert second.text != text
        assert second.score <= first.score
        alignment = segment.alignment
        assert len(alignment.source_pieces) == segment.source_tokens + 1
        assert len(alignment.rows) == len(alignment.target_pieces) == segment.target_tokens + 1
        for row in alignment.rows:
            assert len(row.weights) == len(alignment.source_pieces)
            assert sum(row.weights) == pytest.approx(1, abs=1e-3)
    weights = [segment.target_tokens + 1 for segment in found.segments]
    mean = sum(s.score * w for s, w in zip(found.segments, weights, strict=True)) / sum(weights)
    assert found.score == pytest.approx(mean)
    assert found.target_tokens == sum(segment.target_tokens for segment in found.segments)
    timing = found.timing
    parts = (timing.prepare, timing.queue, timing.first_token, timing.decode)
    assert 0 < sum(part.ToNanoseconds() for part in parts) <= timing.total.ToNanoseconds()
    assert 0 < timing.encode.ToNanoseconds() < timing.first_token.ToNanoseconds()


def test_nothing_else_is_said(running: Running) -> None:
    (found,) = running.translate(TWO)
    assert not found.HasField("timing")
    for segment in found.segments:
        assert not segment.tokens
        assert not segment.alternatives
        assert not segment.HasField("alignment")


def test_a_translation_that_was_cut_says_so(running: Running) -> None:
    whole, cut = (
        running.translate("Good morning.\nGood morning, my dear old friend.", options=options)[0]
        for options in (None, pb.Options(max_tokens=5))
    )
    assert whole.finish_reason == pb.FINISH_REASON_END
    assert cut.finish_reason == pb.FINISH_REASON_LENGTH
    assert [segment.finish_reason for segment in cut.segments] == [
        pb.FINISH_REASON_END,
        pb.FINISH_REASON_LENGTH,
    ]


def test_a_prefix_is_what_the_translation_begins_with(running: Running) -> None:
    (found,) = running.translate("Good morning.", options=pb.Options(target_prefix="Olá, bom"))
    assert found.text.startswith("Olá, bom")
    *_, last = running.stub.TranslateStream(
        pb.TranslateStreamRequest(
            text="Good morning.", options=pb.Options(target_prefix="Olá, bom")
        )
    )
    assert last.translation == found


def test_a_sample_is_repeated_with_its_seed(running: Running) -> None:
    def sample(seed: int) -> str:
        options = pb.Options(sampling=pb.Sampling(temperature=3.0, seed=seed))
        return running.translate("How old is your brother?", options=options)[0].text

    texts = [sample(seed) for seed in range(5)]
    assert [sample(seed) for seed in range(5)] == texts
    assert len(set(texts)) > 1


def test_what_was_lost_in_translation_is_put_back_around_pieces(running: Running) -> None:
    (found,) = running.translate(MASKED, options=CUT)
    assert "jane@example.com" in found.text
    assert len(found.segments) == 2, "the sentence was not done again in pieces"


def test_a_prefix_is_not_repeated_with_the_pieces(running: Running) -> None:
    options = pb.Options(target_prefix="Oi", max_tokens=3)
    (found,) = running.translate(MASKED, options=options)
    assert len(found.segments) == 2
    assert found.text.startswith("Oi")
    assert found.text.count("Oi") == 1


def test_what_was_admitted_is_not_refused_when_it_is_done_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others came meanwhile, and the queue is full."""
    with serving(
        settings_for(engine=few_rows(1), limits=Limits(max_waiting_requests=1))
    ) as running:
        (expected,) = running.translate(MASKED, options=CUT)
        before, after = Gate(), Gate()
        engine, room = running.engine, next(iter(running.server.models)).dispatcher._room
        deliver = engine._deliver

        def hold(report: Report) -> None:
            if report.answers:
                before(report)
            deliver(report)
            if report.answers:
                after(report)

        monkeypatch.setattr(engine, "_deliver", hold)
        request = pb.TranslateRequest(texts=[MASKED], options=CUT)
        call = running.stub.Translate.future(request, timeout=PATIENCE)
        before.wait()
        others = []
        other = pb.TranslateRequest(texts=["Hello."])
        for _ in range(2):  # as many as there are rows
            others.append(running.stub.Translate.future(other, timeout=PATIENCE))
            wait_until(lambda: engine.waiting_requests == len(others))
        assert refusal(lambda: running.stub.Translate(other)).reason == "QUEUE_FULL"
        before.open()
        wait_until(lambda: call.done() or bool(room._waiters), "the second attempt")
        after.open()
        assert list(call.result(PATIENCE).translations) == [expected]
        assert all(each.result(PATIENCE).translations for each in others)


SHOUTED = "PLEASE WRITE TO Jane@Example.com, MY FRIEND."
CALM = "Please write to Jane@Example.com, my friend."


def test_capitals_are_translated_like_small_letters_and_come_back(running: Running) -> None:
    options = pb.Options(beam_size=2, alternatives=2)
    (loud,) = running.translate(SHOUTED, options=options)
    (calm,) = running.translate(CALM, options=options)
    (as_it_is,) = running.translate(SHOUTED, options=pb.Options(beam_size=2, recase=False))
    address = "Jane@Example.com"
    assert address in loud.text
    assert loud.text.replace(address, "").isupper()
    assert loud.text.lower() == calm.text.lower()
    assert loud.score == calm.score
    assert as_it_is.score != calm.score
    texts = [each.text for each in loud.segments[0].alternatives]
    assert all(text.replace(address, "").isupper() for text in texts)
    request = pb.TranslateStreamRequest(text=SHOUTED, options=pb.Options(beam_size=2))
    events = list(running.stub.TranslateStream(request, timeout=PATIENCE))
    deltas = "".join(event.delta for event in events)
    assert deltas == events[-1].translation.text == loud.text


def test_a_prefix_keeps_its_letters_in_a_sentence_in_capitals(running: Running) -> None:
    (found,) = running.translate(SHOUTED, options=pb.Options(target_prefix="Por favor"))
    assert found.text.startswith("Por favor")
