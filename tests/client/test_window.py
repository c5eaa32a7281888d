"""The window of a bulk call: whatever happens, results come once, in order, and not too many."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman_client import CallError, FinishReason, Translation
from dragoman_client._bulk.window import Window

STREAMS = 3
STEPS = st.lists(
    st.sampled_from(["add", "send", "answer", "again", "break", "suspect", "alone", "hand on"]),
    max_size=200,
)


def translation(text: str) -> Translation:
    return Translation(text, 0.0, FinishReason.END, 1, 1, "model", ())


class World:
    """A window, and all that a reader, some streams and a caller do around it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.window = Window(size, STREAMS)
        self.read = 0
        self.sent: list[list[int]] = [[] for _ in range(STREAMS)]
        """Of each stream that is open."""
        self.answered: list[int] = []
        self.handed_on: list[str] = []

    def do(self, step: str, which: int) -> None:
        window, stream = self.window, which % STREAMS
        sent = self.sent[stream]
        if step == "add" and window.has_room:
            window.add(f"text {self.read}")
            self.read += 1
        elif step == "send" and (item := window.next_unsent(stream)) is not None:
            assert item == (item[0], f"text {item[0]}")
            assert not any(item[0] in each for each in self.sent)
            assert item[0] not in self.answered
            sent.append(item[0])
        elif step == "answer" and sent:
            number = sent.pop(which % len(sent))
            window.answer(number, translation(f"text {number}"), stream)
            self.answered.append(number)
        elif step == "again" and self.answered:  # as by a stream that was given up
            number = self.answered[which % len(self.answered)]
            window.answer(number, translation("another"), stream)
        elif step == "break":
            window.take_back(stream)
            sent.clear()
        elif step == "suspect":
            window.suspect(stream)
            sent.clear()
        elif step == "alone" and window.has_suspects(stream) and not sent:
            item = window.next_unsent(stream)
            assert item is not None
            window.blame(CallError(f"text {item[0]}"), stream)
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
        for stream, sent in enumerate(self.sent):
            assert self.window.has_sent(stream) == bool(sent)


@given(st.integers(1, 5), st.lists(st.tuples(STEPS, st.integers(0, 9)), max_size=5))
def test_results_come_once_in_order_and_never_more_than_the_window(
    size: int, steps: list[tuple[list[str], int]]
) -> None:
    world = World(size)
    for names, which in steps:
        for name in names:
            world.do(name, which)
            world.check()
    # Whatever has happened, one stream that is answered brings the rest.
    for stream in range(STREAMS):
        world.do("break", stream)
        assert not world.window.has_suspects(stream)
    for name in ("send", "answer", "hand on"):
        for _ in range(size):
            world.do(name, 0)
    assert len(world.handed_on) == world.read
    assert world.window.has_room


def test_what_a_stream_lost_is_sent_before_what_is_newer() -> None:
    window = Window(10, 2)
    for number in range(4):
        window.add(f"text {number}")
    assert [window.next_unsent(stream) for stream in (0, 1, 0)] == [
        (0, "text 0"),
        (1, "text 1"),
        (2, "text 2"),
    ]
    window.take_back(0)
    assert [window.next_unsent(1) for _ in range(3)] == [
        (0, "text 0"),
        (2, "text 2"),
        (3, "text 3"),
    ]
