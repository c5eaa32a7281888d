"""Searches among the tokens of a shortlist: which sentences of a lane have one, and their steps.

The only module of the engine that knows of shortlists. The tokens that each row chooses among, and
their output weights, are in ``graphs.shortlists``, in memory that the graphs are bound to.
"""

from collections.abc import Callable

import numpy as np

from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine.rows import Rows, Running
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.results import StepResult
from dragoman_server.runtime.scoring import candidates_of


class Shortlisting:
    """The shortlists of a lane's sentences; none where the bundle has no shortlist."""

    def __init__(self, graphs: Graphs, rows: Rows, shortlist: Shortlist | None) -> None:
        self._graphs = graphs
        self._rows = rows
        self._shortlist = shortlist
        self._lists = graphs.shortlists
        self._tokens: dict[Running, Ints] = {}
        """Tokens that each shortlisted sentence chooses among."""

    @property
    def count(self) -> int:
        """Sentences that choose among the tokens of a shortlist."""
        return len(self._tokens)

    def add(self, running: Running) -> bool:
        """Give a sentence its shortlist, if it can have one. Returns whether it has."""
        if self._shortlist is None or not running.job.decoding.may_use_shortlist:
            return False
        tokens = self._shortlist.tokens_for(running.job.sentence.source)
        if tokens is None or len(tokens) <= candidates_of(running.job.decoding.beam):
            return False  # it may need other tokens, or its search looks at more
        assert self._lists is not None
        self._lists.fill(running.rows, tokens)
        self._tokens[running] = tokens
        return True

    def remove(self, running: Running) -> bool:
        """Forget a sentence that ends. Returns whether it had a shortlist."""
        tokens = self._tokens.pop(running, None)
        if tokens is None:
            return False
        assert self._lists is not None
        self._lists.free(tokens)
        return True

    def move(self, sources: list[int], destinations: list[int]) -> None:
        """Move the lists of rows to other rows."""
        if self._tokens:
            assert self._lists is not None
            self._lists.move(sources, destinations)

    def step(self, candidates: int, *, is_trial: bool = False) -> StepResult:
        """Step all active rows, each among the tokens of its shortlist."""
        rows, count = self._rows, self._rows.count
        assert self._lists is not None
        # The end token is the first of each list; it may not come before the minimum length.
        is_early = rows.past[:count] - rows.start[:count] < rows.min_tokens[:count]
        self._lists.offsets[:count, 0] = np.where(is_early, -np.inf, 0.0)
        return self._graphs.step_shortlisted(*rows.inputs, candidates=candidates, is_trial=is_trial)

    def step_beside(self, step_all: Callable[[], StepResult], candidates: int) -> StepResult:
        """Step rows with a shortlist and rows without; ``step_all`` does the latter.

        Both graphs do all rows, and this is rare. The caches get the same values twice; states of
        cells, which a second step would change, get theirs from the latter alone.
        """
        result = self.step(candidates, is_trial=True)
        listed = [row for running in self._tokens for row in running.rows]
        seconds = result.seconds
        kept = [of_all[listed] for of_all in result.chosen]
        result = step_all()
        for of_all, of_listed in zip(result.chosen, kept, strict=True):
            of_all[listed] = of_listed
        result.seconds += seconds
        return result

    def warm_up(
        self, token_ids: Ints, past_lengths: Ints, source_lengths: Ints, *, candidates: int
    ) -> None:
        """Step all rows once, with lists of as many tokens as there can be."""
        if self._lists is not None:
            self._lists.fill_all()
            self._graphs.step_shortlisted(
                token_ids, past_lengths, source_lengths, candidates=candidates
            )
            self._lists.clear()
