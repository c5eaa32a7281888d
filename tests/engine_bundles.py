"""Bundles of seeded models, unverified, and a way to watch an engine from outside."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from conftest import random_sources, tiny_model
from dragoman_export.bundle_files import write_unverified
from dragoman_server.bundle.manifest import MANIFEST
from dragoman_server.bundle.reading import RunnableBundle, UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine.core import GREEDY, Answer, Options, Report, Sentence, Ticket
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings
from dragoman_training.transformer import Transformer

PATIENCE = 60.0
"""Seconds after which a test that waits for the engine fails; nothing waits that long."""
_DIRECTORY = tempfile.TemporaryDirectory()


def one_lane(rows: int = 16) -> EngineSettings:
    """So many rows for any request, and eight for those that hold none."""
    return EngineSettings(rows=rows, lanes=1, threads=1)


def forced_length(tokens: int) -> Options:
    """So many tokens, the end token included, whatever the model says."""
    return Options(min_tokens=tokens - 1, max_tokens=tokens)


def sentences(count: int, seed: int, longest: int = 12) -> list[Sentence]:
    return [Sentence(tuple(source)) for source in random_sources(count, seed, longest)]


def graph_bundle(
    model: Transformer, precision: str = "float32", shortlist: Shortlist | None = None
) -> UncheckedBundle:
    """Graphs of a model as they are written, whatever they compute."""
    path = Path(tempfile.mkdtemp(dir=_DIRECTORY.name))
    bundle = write_unverified(
        model, path, precision, calibration=random_sources(20, seed=1), shortlist=shortlist
    )
    (path / MANIFEST).write_text(bundle.manifest.to_json())
    return bundle


@cache
def seeded_bundle() -> UncheckedBundle:
    """Of ``tiny_model(seed=1)``, with 50 tokens."""
    return graph_bundle(tiny_model(seed=1))


@cache
def long_bundle() -> UncheckedBundle:
    """Takes 256 tokens."""
    return graph_bundle(tiny_model(seed=2, max_length=256, encoder_layers=1))


class Gate:
    """Something to do at a report: holds the lane until it is opened."""

    def __init__(self) -> None:
        self._reached, self._opened = threading.Event(), threading.Event()

    def __call__(self, report: Report) -> None:
        self._reached.set()
        assert self._opened.wait(PATIENCE)

    def wait(self) -> None:
        """Until a lane is there."""
        assert self._reached.wait(PATIENCE), "waited in vain"

    def open(self) -> None:
        self._opened.set()


class Watched:
    """An engine, everything that it reported, and something to do at each report."""

    def __init__(
        self,
        bundle: RunnableBundle,
        settings: EngineSettings,
        at_report: Callable[[Report], None] = lambda report: None,
    ) -> None:
        self.engine = Engine(bundle, settings, self._deliver)
        self.reports: list[Report] = []
        self.at_report = at_report
        self._changed = threading.Condition()

    def _deliver(self, report: Report) -> None:
        with self._changed:
            self.reports.append(report)
            self._changed.notify_all()
        self.at_report(report)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Asked again at each report."""
        with self._changed:
            assert self._changed.wait_for(holds, timeout=PATIENCE), "waited in vain"

    @property
    def answers(self) -> dict[Ticket, Answer]:
        """All so far. A second answer of a sentence is an error."""
        found: dict[Ticket, Answer] = {}
        for report in list(self.reports):
            for answer in report.answers:
                assert answer.ticket not in found, "answered twice"
                found[answer.ticket] = answer
        return found

    def answers_of(self, request: int, count: int = 1) -> list[Answer]:
        """Waits for them."""
        tickets = [Ticket(request, number) for number in range(count)]
        self.wait_until(lambda: self.answers.keys() >= {*tickets})
        found = self.answers
        return [found[ticket] for ticket in tickets]

    def translate(self, wanted: Sequence[Sentence], options: Options = GREEDY) -> list[Answer]:
        return self.answers_of(self.engine.submit(wanted, options), len(wanted))

    def steps(self, since: int = 0) -> int:
        """Of all lanes, in the reports from this one on."""
        return sum(report.rows > 0 for report in self.reports[since:])

    def tokens_of(self, request: int) -> list[int]:
        """Those that were streamed."""
        return [
            new.token
            for report in list(self.reports)
            for new in report.tokens
            if new.ticket.request == request
        ]


@contextmanager
def running(
    bundle: RunnableBundle,
    settings: EngineSettings | None = None,
    at_report: Callable[[Report], None] = lambda report: None,
) -> Iterator[Watched]:
    """An engine that runs, and is closed in the end."""
    watched = Watched(bundle, settings or one_lane(), at_report)
    watched.engine.start()
    try:
        yield watched
    finally:
        if isinstance(at_report, Gate):
            at_report.open()
        watched.engine.close()


Bits = tuple[object, ...]


def bits(answer: Answer) -> Bits:
    """All that an answer says, to the last bit."""
    assert answer.failure is None, answer.failure
    return tuple(
        (
            h.ids,
            h.log_prob.hex(),
            h.score.hex(),
            h.finish,
            tuple(log_prob.hex() for log_prob in h.token_log_probs),
            None if h.alignment is None else h.alignment.tobytes(),
        )
        for h in answer.hypotheses
    )
