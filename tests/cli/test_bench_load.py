"""Loads of ``dragoman bench`` on real servers: when calls are sent, and what is counted."""

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dragoman_cli.bench.load import Load, LoadSettings
from dragoman_cli.bench.schedule import poisson_arrivals
from dragoman_cli.bench.texts import everyday_sentences
from dragoman_client import AsyncClient, Client, ConfigurationError, Translation
from support.client_servers import ONCE
from support.service_running import PATIENCE, Running, held, wait_until


def load_of(
    address: str, then: Callable[[Load], None] = lambda load: None, **settings: Any
) -> Load:
    """Run a load to its end; ``then`` is called in another thread when it has begun."""

    async def run() -> Load:
        async with AsyncClient(address, timeout=PATIENCE, retries=ONCE) as client:
            load = Load(client, everyday_sentences(1), {}, LoadSettings(**settings))
            thread = threading.Thread(target=then, args=(load,))
            loop = asyncio.get_running_loop()
            loop.call_soon(thread.start)
            await load.run()
            thread.join(PATIENCE)
            return load

    return asyncio.run(run())


def test_waiting_for_a_slow_server_counts_from_when_a_call_was_to_be_sent(running: Running) -> None:
    """One call may be under way, and is held: those behind it are sent late, and say so."""
    settings = {"rate": 40.0, "seconds": 1.5, "warm_up": 0.0, "seed": 3}
    arrivals = list(poisson_arrivals(40.0, 1.5, 3))
    opened: list[float] = []

    with held(running.engine) as gate:

        def open_later(load: Load) -> None:
            gate.wait()
            wait_until(lambda: load.now > 0.6, "some calls to be late")
            opened.append(load.now)
            gate.open()

        load = load_of(
            running.server.address, open_later, max_under_way=1, stream_share=0.0, **settings
        )
    counted = load.statistics
    assert counted.failed == 0
    assert counted.arrived == counted.answered + counted.unsent == len(arrivals)
    # None that was to be sent before the gate opened can have been answered earlier than that.
    waited = sorted((opened[0] - moment for moment in arrivals if moment < opened[0]), reverse=True)
    assert len(waited) > 10
    assert counted.latency.max >= waited[0]
    for least in waited[: counted.answered]:
        longer = counted.answered - counted.latency.within(least * 0.97)
        assert longer >= sum(each >= least for each in waited[: counted.answered])
    assert counted.lag.max >= waited[1] * 0.97


def test_what_could_not_be_sent_in_time_is_not_forgotten(running: Running) -> None:
    with held(running.engine) as gate:

        def open_later(load: Load) -> None:
            wait_until(lambda: load.now > 0.5, "the end")
            gate.open()

        load = load_of(
            running.server.address,
            open_later,
            rate=50.0,
            seconds=0.4,
            warm_up=0.0,
            max_under_way=1,
        )
    arrivals = len(list(poisson_arrivals(50.0, 0.4, 1)))
    assert (load.statistics.answered, load.statistics.unsent) == (1, arrivals - 1)
    assert load.statistics.share_within(60.0) < 0.2


def test_a_closed_loop_has_so_many_calls_under_way(running: Running) -> None:
    most: list[int] = []

    with held(running.engine) as gate:

        def look(load: Load) -> None:
            wait_until(
                lambda: running.engine.waiting_requests + running.engine.used_rows >= 5,
                "five calls",
            )
            most.append(load.under_way)
            gate.open()

        load = load_of(running.server.address, look, concurrency=5, calls=20, stream_share=0.0)
    assert most == [5]
    assert (load.statistics.answered, load.statistics.arrived) == (20, 20)
    assert load.statistics.sentences >= 20


def test_streamed_calls_show_the_first_token(running: Running) -> None:
    load = load_of(running.server.address, concurrency=2, calls=8, stream_share=1.0)
    counted = load.statistics
    assert counted.first_token.count == counted.latency.count == 8
    assert counted.first_token.total < counted.latency.total
    assert 0 < counted.per_token.count <= 8
    assert counted.target_tokens > 20


def test_a_stream_hands_over_the_whole_translation_at_its_end(running: Running) -> None:
    whole: list[Translation] = []
    with Client(running.server.address, timeout=PATIENCE) as client:
        pieces = list(client.stream("Good morning. Good night.", ended=whole.append))
        assert len(pieces) > 1
        assert whole[0] == client.translate("Good morning. Good night.")
    assert ("".join(pieces), len(whole)) == (whole[0].text, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"rate": 0.0}, {"rate": math.nan}, {"seconds": -1.0}, {"concurrency": 0}),
        *({"calls": 0}, {"stream_share": 1.5}, {"warm_up": -1.0}, {"rate": 5.0, "calls": 5}),
    ],
)
def test_settings_that_can_t_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        LoadSettings(**wrong)
