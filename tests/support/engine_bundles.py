"""Bundles of seeded models, unverified, and a way to watch an engine from outside."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from dragoman_export.bundle_files import write_unverified
from dragoman_server.bundle.manifest import MANIFEST
from dragoman_server.bundle.reading import RunnableBundle, UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine.core import GREEDY, Answer, Options, Report, Sentence, Ticket
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings
from dragoman_training.models.transformer import Transformer
from support.engine_reports import Gate, Reports
from support.models import random_sources, tiny_model

_DIRECTORY = tempfile.TemporaryDirectory()


def one_lane(rows: int = 16) -> EngineSettings:
    """Return the settings of one lane: ``rows`` for any request, and eight for who holds none."""
    return EngineSettings(rows=rows, lanes=1, threads=1)


def forced_length(tokens: int) -> Options:
    """Return options for exactly so many tokens, the end token included."""
    return Options(min_tokens=tokens - 1, max_tokens=tokens)


def sentences(count: int, seed: int, longest: int = 12) -> list[Sentence]:
    return [Sentence(tuple(source)) for source in random_sources(count, seed, longest)]


def graph_bundle(
    model: Transformer, precision: str = "float32", shortlist: Shortlist | None = None
) -> UncheckedBundle:
    """Return the graphs of a model as they are written, whatever they compute."""
    path = Path(tempfile.mkdtemp(dir=_DIRECTORY.name))
    bundle = write_unverified(
        model, path, precision, calibration=random_sources(20, seed=1), shortlist=shortlist
    )
    (path / MANIFEST).write_text(bundle.manifest.to_json())
    return bundle


@cache
def seeded_bundle() -> UncheckedBundle:
    """Return the bundle of ``tiny_model(seed=1)``, with a vocabulary of 50 tokens."""
    return graph_bundle(tiny_model(seed=1))


@cache
def long_bundle() -> UncheckedBundle:
    """Return a bundle that takes sentences of 256 tokens."""
    return graph_bundle(tiny_model(seed=2, max_length=256, encoder_layers=1))


class Watched(Reports):
    """An engine, everything that it reported, and something to do at each report."""

    def __init__(
        self,
        bundle: RunnableBundle,
        settings: EngineSettings,
        at_report: Callable[[Report], None] = lambda report: None,
    ) -> None:
        super().__init__(at_report)
        self.engine = Engine(bundle, settings, self.take)

    @property
    def reports(self) -> list[Report]:
        """All reports so far."""
        return self.all

    @property
    def answers(self) -> dict[Ticket, Answer]:
        """All answers so far. A second answer of a sentence is an error."""
        found: dict[Ticket, Answer] = {}
        for report in list(self.reports):
            for answer in report.answers:
                assert answer.ticket not in found, "answered twice"
                found[answer.ticket] = answer
        return found

    def answers_of(self, request: int, count: int = 1) -> list[Answer]:
        """Wait for the answers of a request, and return them."""
        tickets = [Ticket(request, number) for number in range(count)]
        self.wait_until(lambda: self.answers.keys() >= {*tickets})
        found = self.answers
        return [found[ticket] for ticket in tickets]

    def translate(self, wanted: Sequence[Sentence], options: Options = GREEDY) -> list[Answer]:
        return self.answers_of(self.engine.submit(wanted, options), len(wanted))

    def steps(self, since: int = 0) -> int:
        """Return the number of steps of all lanes, in the reports from this one on."""
        return sum(report.rows > 0 for report in self.reports[since:])

    def tokens_of(self, request: int) -> list[int]:
        """Return the tokens of a request that were streamed."""
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
    """Run an engine, and close it in the end."""
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
    """Return all that an answer says, to the last bit."""
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
