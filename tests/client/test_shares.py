"""How bulk work is shared: in proportion to speed, and so that nobody waits for the slowest."""

import heapq

import pytest

from dragoman_client import FinishReason, Translation
from dragoman_client._bulk.shares import Shares
from dragoman_client._bulk.window import Window

ITEMS = 8_000
DONE = Translation("", 0.0, FinishReason.END, 1, 1, "model", ())


class Simulated:
    """Servers of some rows that each take some seconds for an item, and a clock of their own."""

    def __init__(self, servers: list[tuple[int, float]], window: int) -> None:
        self.servers = servers
        self.window = Window(window, len(servers))
        self.shares = Shares(len(servers))
        self.now = 0.0
        self.answered = [0] * len(servers)
        self.sent = [0] * len(servers)
        self._free = [[0.0] * rows for rows, _ in servers]
        """When each row of each server is free."""
        self._ends: list[tuple[float, int, int]] = []
        for stream in range(len(servers)):
            self.shares.open(stream)
            self.shares.wait(stream)

    def run(self) -> None:
        read = 0
        while sum(self.answered) < ITEMS:
            while read < ITEMS and self.window.has_room:
                self.window.add("text")
                read += 1
            self._send()
            self.now, stream, number = heapq.heappop(self._ends)
            self.window.answer(number, DONE, stream)
            self.shares.answer(stream, self.now)
            self.answered[stream] += 1
            while self.window.next_result() is not None:
                pass

    def _send(self) -> None:
        while self.window.has_unsent:
            turns = [s for s in range(len(self.servers)) if self.shares.is_turn_of(s)]
            if not turns:
                return
            stream = turns[0]
            item = self.window.next_unsent(stream)
            assert item is not None
            self.shares.send(stream, self.now)
            self.shares.wait(stream)
            self.sent[stream] += 1
            begins = max(self.now, heapq.heappop(self._free[stream]))
            ends = begins + self.servers[stream][1]
            heapq.heappush(self._free[stream], ends)
            heapq.heappush(self._ends, (ends, stream, item[0]))


@pytest.mark.parametrize(
    "servers",
    [
        [(40, 1.0), (40, 1.0)],
        [(40, 1.0), (20, 1.0)],
        [(40, 1.0), (40, 3.0)],
        [(80, 0.5), (16, 1.0)],
        [(1, 0.01), (1, 0.1)],
        [(40, 1.0), (40, 2.0), (10, 1.0), (4, 0.2)],
    ],
)
def test_servers_get_items_in_proportion_to_how_fast_they_answer(
    servers: list[tuple[int, float]],
) -> None:
    world = Simulated(servers, 256 * len(servers))
    world.run()
    speeds = [rows / seconds for rows, seconds in servers]
    for answered, speed in zip(world.answered, speeds, strict=True):
        assert answered / ITEMS == pytest.approx(speed / sum(speeds), rel=0.1)
    assert world.now < 1.1 * ITEMS / sum(speeds)  # nearly as fast as all of them together


def test_a_server_that_is_not_full_keeps_its_share() -> None:
    """Where every item takes as long wherever it is, speed says nothing, and shares are even."""
    world = Simulated([(1000, 1.0), (1000, 1.0)], 16)
    world.run()
    assert min(world.answered) > 0.3 * ITEMS


def test_a_server_that_does_not_answer_gets_a_few_items_and_holds_nobody_back() -> None:
    shares = Shares(2)
    for stream in (0, 1):
        shares.open(stream)
        shares.wait(stream)
    given = [0, 0]
    for step in range(200):
        for stream in (0, 1):
            while shares.is_turn_of(stream) and given[stream] - step * (stream == 0) < 50:
                shares.send(stream, float(step))
                shares.wait(stream)
                given[stream] += 1
        shares.answer(0, step + 0.5)  # and the other never does
    assert given[0] > 200
    assert given[1] <= 4


def test_a_stream_that_is_held_back_is_not_waited_for() -> None:
    shares = Shares(2)
    for stream in (0, 1):
        shares.open(stream)
        shares.wait(stream)
    shares.send(0, 0.0)  # and it does not ask for more: its server does not read
    assert shares.is_turn_of(1)
    shares.send(1, 0.0)
    shares.wait(1)
    assert shares.is_turn_of(1)  # though it has as many under way
    shares.wait(0)
    shares.send(1, 0.0)
    shares.wait(1)
    assert not shares.is_turn_of(1)
    shares.close(0)
    assert shares.is_turn_of(1)
