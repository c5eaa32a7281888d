"""What is known of sentences whose worker was lost: what they said before, and how often it was."""

from collections import Counter
from collections.abc import Iterable

from dragoman_server.engine.core import Answer, NewToken, Ticket

_SUSPICIOUS_CRASHES = 2
"""Crashes after which a sentence runs alone."""
_GUILTY_CRASHES = 4
"""Crashes after which a sentence is to blame. It was alone in the last two of them, as one says
little: workers also die for reasons of their own."""


class Reruns:
    """Counts for each sentence that is not answered."""

    def __init__(self) -> None:
        self._streamed: Counter[Ticket] = Counter()
        """Tokens of each streamed sentence that were delivered."""
        self._repeated: Counter[Ticket] = Counter()
        """Tokens that a sentence which runs again will repeat."""
        self._crashes: Counter[Ticket] = Counter()
        """Crashes that each sentence was in."""

    def is_new(self, token: NewToken) -> bool:
        """Whether a token was not delivered before the worker of its sentence was lost."""
        if self._repeated[token.ticket]:
            self._repeated[token.ticket] -= 1
            return False
        self._streamed[token.ticket] += 1
        return True

    def add_crash(self, ticket: Ticket) -> bool:
        """Take note that a sentence has to run again. Returns whether it is to run alone."""
        self._crashes[ticket] += 1
        self._repeated[ticket] = self._streamed[ticket]
        return self._crashes[ticket] >= _SUSPICIOUS_CRASHES

    def is_guilty(self, ticket: Ticket) -> bool:
        """Whether a sentence was in so many crashes that it is not run again."""
        return self._crashes[ticket] >= _GUILTY_CRASHES

    def forget(self, answers: Iterable[Answer]) -> None:
        """Keep nothing of sentences that were answered."""
        for answer in answers:
            for counter in (self._streamed, self._repeated, self._crashes):
                counter.pop(answer.ticket, None)
