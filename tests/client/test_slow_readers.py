"""Clients that read slowly, or leave: the server waits for them, and keeps nothing of theirs."""

import asyncio

import pytest

from dragoman_client import AsyncClient, Client
from dragoman_server.service.settings import Limits
from support.service_running import Running, held, wait_until


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
