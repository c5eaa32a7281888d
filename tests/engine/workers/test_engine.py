"""Lanes in real processes, which are killed and stopped: nothing is lost, and nothing differs."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import TypeVar

import pytest

from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.engine.core import (
    Answer,
    Failure,
    Options,
    Report,
    Sampling,
    Sentence,
    Ticket,
)
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.engine.workers.engine import WorkerEngine
from dragoman_server.engine.workers.link import LinkState, WorkerLink
from dragoman_server.engine.workers.starting import Delays
from support import MODEL
from support.engine_bundles import Bits, bits
from support.service_running import PATIENCE

T = TypeVar("T")
WAYS = [
    Options(),
    Options(beam=4, n_best=2),
    Options(sampling=Sampling(seed=5, top_k=10)),
    Options(alignment=True, min_tokens=3),
    Options(repetition_penalty=1.2, no_repeat_ngram=2),
]
LONG = Options(min_tokens=250, max_tokens=256)


@cache
def bundle() -> Bundle:
    return read_bundle(MODEL)


@cache
def sentences(count: int) -> list[Sentence]:
    rng = random.Random(count)
    return [
        Sentence(tuple(rng.randrange(300, 7000) for _ in range(rng.randint(2, 12))))
        for _ in range(count)
    ]


@cache
def expected(count: int) -> list[Bits]:
    """What threads say: sentence i is translated in way i."""
    with Translator(bundle(), EngineSettings(rows=8, lanes=1, threads=1, max_beam=4)) as translator:
        pending = [
            translator.submit([sentence], WAYS[number % len(WAYS)])
            for number, sentence in enumerate(sentences(count))
        ]
        return [bits(each.result(PATIENCE)[0]) for each in pending]


class Workers:
    """An engine of workers, and all that it said."""

    def __init__(self) -> None:
        self.answers: dict[Ticket, Answer] = {}
        self.tokens: dict[Ticket, list[int]] = {}
        settings = EngineSettings(rows=8, workers=2, threads=1, max_beam=4)
        self.engine = WorkerEngine(bundle(), settings, self._take)

    def _take(self, report: Report) -> None:
        for new in report.tokens:
            assert new.ticket not in self.answers, "a token after the answer"
            self.tokens.setdefault(new.ticket, []).append(new.token)
        for answer in report.answers:
            assert answer.ticket not in self.answers, "answered twice"
            self.answers[answer.ticket] = answer

    @property
    def links(self) -> list[WorkerLink]:
        return list(self.engine._links.values())

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(0.002)

    async def answer(self, request: int) -> Answer:
        ticket = Ticket(request, 0)
        await self.until(lambda: ticket in self.answers)
        return self.answers[ticket]

    def submit_all(self, count: int) -> list[int]:
        return [
            self.engine.submit([sentence], WAYS[number % len(WAYS)], stream=True)
            for number, sentence in enumerate(sentences(count))
        ]

    async def check(self, requests: list[int]) -> None:
        """All answers are what threads say, and so is what was streamed of them."""
        for number, (request, want) in enumerate(
            zip(requests, expected(len(requests)), strict=True)
        ):
            answer = await self.answer(request)
            assert bits(answer) == want
            if number % len(WAYS) != 1:  # a beam streams nothing
                said = self.tokens.get(answer.ticket, [])
                assert tuple(said) == answer.hypotheses[0].ids


@asynccontextmanager
async def workers() -> AsyncIterator[Workers]:
    running = Workers()
    await asyncio.to_thread(running.engine.open)
    running.engine.start(asyncio.get_running_loop())
    try:
        yield running
    finally:
        pids = [link.pid for link in running.links]
        await asyncio.to_thread(running.engine.close)
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


def run(test: Callable[[Workers], Awaitable[T]]) -> T:
    async def body() -> T:
        async with workers() as running:
            return await test(running)

    return asyncio.run(body())


def test_processes_say_what_threads_say() -> None:
    async def test(running: Workers) -> None:
        await running.check(running.submit_all(60))
        assert {link.state for link in running.links} == {LinkState.READY}
        assert not running.engine.lost_workers
        assert not any(link.jobs or link.leaving for link in running.links)

    run(test)


def test_workers_that_are_killed_lose_nothing() -> None:
    async def test(running: Workers) -> None:
        requests = running.submit_all(150)
        rng = random.Random(3)
        for kills in range(1, 5):
            await running.until(lambda: any(link.jobs for link in running.links))
            victim = rng.choice([link for link in running.links if link.jobs])
            os.kill(victim.pid, signal.SIGKILL)
            await running.until(lambda: running.engine.lost_workers == kills)  # noqa: B023
        await running.check(requests)
        assert running.engine.rerun_sentences + running.engine.quarantined_sentences > 0

    run(test)


def test_a_worker_that_hangs_is_replaced() -> None:
    async def test(running: Workers) -> None:
        requests = running.submit_all(40)
        await running.until(lambda: any(link.jobs for link in running.links))
        stopped = next(link for link in running.links if link.jobs)
        os.kill(stopped.pid, signal.SIGSTOP)
        await asyncio.sleep(0.5)
        assert running.engine.find_lost_lane(stall_seconds=60.0) is None
        assert stopped in running.links
        assert running.engine.find_lost_lane(stall_seconds=0.4) is None
        assert stopped not in running.links
        await running.check(requests)

    run(test)


def test_the_sentence_that_ends_workers_is_answered_with_a_fault_and_no_other() -> None:
    async def test(running: Workers) -> None:
        bad = running.engine.submit(sentences(5)[:1], LONG)
        innocent = running.submit_all(40)
        ticket = Ticket(bad, 0)
        while ticket not in running.answers:
            quarantined = filter(None, [running.engine._quarantine.link])
            for link in (*running.links, *quarantined):
                if ticket in link.jobs:
                    os.kill(link.pid, signal.SIGKILL)
                    await running.until(lambda: ticket not in link.jobs)  # noqa: B023
            await asyncio.sleep(0.001)
        assert running.answers[ticket].failure is Failure.FAULT
        assert running.engine.lost_workers == 4
        await running.check(innocent)
        await running.until(lambda: running.engine._quarantine.link is None)

    run(test)


def test_sentences_leave_when_their_request_is_cancelled_or_expires() -> None:
    async def test(running: Workers) -> None:
        loop = asyncio.get_running_loop()
        cancelled = running.engine.submit(sentences(5)[:1], LONG)
        late = running.engine.submit(sentences(5)[:1], LONG, deadline=loop.time() + 0.05)
        await running.until(lambda: any(link.jobs for link in running.links))
        running.engine.cancel(cancelled)
        assert (await running.answer(cancelled)).failure is Failure.CANCELLED
        assert (await running.answer(late)).failure is Failure.EXPIRED
        assert not any(link.jobs for link in running.links)

    run(test)


def test_what_was_cancelled_is_not_run_again() -> None:
    async def test(running: Workers) -> None:
        request = running.engine.submit(sentences(5)[:1], LONG)
        await running.until(lambda: any(link.jobs for link in running.links))
        (link,) = (link for link in running.links if link.jobs)
        os.kill(link.pid, signal.SIGSTOP)
        running.engine.cancel(request)
        os.kill(link.pid, signal.SIGKILL)
        assert (await running.answer(request)).failure is Failure.CANCELLED
        assert not running.engine.rerun_sentences

    run(test)


def test_closing_answers_what_is_left() -> None:
    running = Workers()

    async def test() -> None:
        await asyncio.to_thread(running.engine.open)
        running.engine.start(asyncio.get_running_loop())
        requests = [running.engine.submit(sentences(5)[:1], LONG) for _ in range(40)]
        await running.until(lambda: any(link.jobs for link in running.links))
        await asyncio.to_thread(running.engine.close)
        failures = {running.answers[Ticket(request, 0)].failure for request in requests}
        assert failures == {Failure.STOPPED}

    asyncio.run(test())


def test_a_lane_whose_workers_keep_dying_is_tried_less_and_less_often() -> None:
    delays = Delays()
    assert [delays.next(0, was_sound=False) for _ in range(10)] == [
        *(0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0),
    ]
    assert delays.next(1, was_sound=False) == 0.0
    assert delays.next(0, was_sound=True) == 0.0
    assert delays.next(0, was_sound=False) == 0.25
