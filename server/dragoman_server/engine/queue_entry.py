"""What the scheduler knows of a request: what its sentences need, and which of them wait or run."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Need:
    """What a sentence takes of a lane."""

    rows: int
    """Rows that the sentence holds while it runs."""
    source_tokens: int
    """Source tokens of the sentence, the end token included."""


@dataclass
class QueueEntry:
    """A request in the scheduler, until all of its sentences have ended."""

    flow: int
    priority: int
    """Priority of the request; a larger number goes first."""
    deadline: float
    """Moment at which the request expires, on the clock of whoever asks."""
    needs: Sequence[Need]
    """Needs of the request's sentences."""
    next: int = 0
    """Number of the first sentence that has not begun."""
    again: deque[int] = field(default_factory=deque)
    """Sentences that wait though they had begun: their lane was lost."""
    running: dict[int, int] = field(default_factory=dict)
    """Lane of each running sentence, by the sentence's number."""

    @property
    def waiting(self) -> int:
        """Sentences that wait."""
        return len(self.needs) - self.next + len(self.again)

    @property
    def waiting_sentences(self) -> list[int]:
        """Numbers of the sentences that wait, the next one first."""
        return [*self.again, *range(self.next, len(self.needs))]

    @property
    def waiting_rows(self) -> int:
        """Rows that the waiting sentences will hold."""
        return sum(self.needs[sentence].rows for sentence in self.waiting_sentences)

    @property
    def waiting_tokens(self) -> int:
        """Source tokens of the waiting sentences."""
        return sum(self.needs[sentence].source_tokens for sentence in self.waiting_sentences)

    @property
    def next_sentence(self) -> int:
        """Number of the sentence that begins next."""
        return self.again[0] if self.again else self.next
