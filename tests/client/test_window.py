"""The window of a long stream: whatever happens, results come once, in order, and not too many."""

import grpc
from hypothesis import given
from hypothesis import strategies as st

from dragoman_client import CallError, FinishReason, Translation
from dragoman_client._window import Window

STEPS = st.lists(
    st.sampled_from(["add", "send", "answer", "again", "break", "suspect", "alone", "hand on"]),
    max_size=200,
)


def translation(text: str) -> Translation:
    return Translation(text, 0.0, FinishReason.END, 1, 1, "model", ())


class World:
    """A window, and all that a reader, a stream and a caller do around it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.window = Window(size)
        self.read = 0
        self.sent: list[int] = []
        """In the stream that is open."""
        self.answered: list[int] = []
        self.handed_on: list[str] = []

    def do(self, step: str, which: int) -> None:
        window = self.window
        if step == "add" and window.has_room:
            window.add(f"text {self.read}")
            self.read += 1
        elif step == "send" and (item := window.next_unsent()) is not None:
            assert item == (item[0], f"text {item[0]}")
            assert item[0] not in self.sent
            assert item[0] not in self.answered
            self.sent.append(item[0])
        elif step == "answer" and self.sent:
            number = self.sent.pop(which % len(self.sent))
            window.answer(number, translation(f"text {number}"))
            self.answered.append(number)
        elif step == "again" and self.answered:  # as by a stream that was given up
            window.answer(self.answered[which % len(self.answered)], translation("another"))
        elif step == "break":
            window.send_all_again()
            self.sent.clear()
        elif step == "suspect":
            window.suspect_all()
        elif step == "alone" and window.has_suspects:
            self.do("break", 0)
            item = window.next_unsent()
            assert item is not None
            window.blame(CallError(f"text {item[0]}", code=grpc.StatusCode.UNKNOWN))
            self.answered.append(item[0])
        elif step == "hand on" and (result := window.next_result()) is not None:
            self.handed_on.append(
                result.text if isinstance(result, Translation) else result.message
            )

    def check(self) -> None:
        assert self.handed_on == [f"text {number}" for number in range(len(self.handed_on))]
        assert len(self.handed_on) <= len(self.answered) <= self.read
        assert self.read - len(self.handed_on) <= self.size
        assert self.window.is_empty == (self.read == len(self.handed_on))


@given(st.integers(1, 5), st.lists(st.tuples(STEPS, st.integers(0, 9)), max_size=5))
def test_results_come_once_in_order_and_never_more_than_the_window(
    size: int, steps: list[tuple[list[str], int]]
) -> None:
    world = World(size)
    for names, which in steps:
        for name in names:
            world.do(name, which)
            world.check()
    # Whatever has happened, a stream that is answered brings the rest.
    world.do("break", 0)
    for name in ("send", "answer", "hand on"):
        for _ in range(size):
            world.do(name, 0)
    assert len(world.handed_on) == world.read
    assert not world.window.has_suspects
    assert world.window.has_room
