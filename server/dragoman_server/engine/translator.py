"""An engine to call from the same process: a request in, a future out."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from dragoman_server.bundle import Bundle
from dragoman_server.engine.core import GREEDY, Answer, Options, Report, Sentence
from dragoman_server.engine.engine import Engine, EngineSettings


class Pending(Future[list[Answer]]):
    """The answers of a request, in the order of its sentences, when all are there."""

    def __init__(self, sentences: int) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()  # only the engine can cancel a request
        self.request = -1
        self._missing = sentences
        self._answers: list[Answer | None] = [None] * sentences

    def put(self, answer: Answer) -> bool:
        """Returns whether it was the last."""
        assert self._answers[answer.ticket.sentence] is None, "answered twice"
        self._answers[answer.ticket.sentence] = answer
        self._missing -= 1
        return not self._missing

    def complete(self) -> None:
        self.set_result([answer for answer in self._answers if answer is not None])


class Translator:
    """Use it as a context manager: the engine runs from entering to leaving."""

    def __init__(self, bundle: Bundle, settings: EngineSettings | None = None) -> None:
        self.engine = Engine(bundle, settings or EngineSettings(), self._deliver)
        self._lock = threading.Lock()
        self._pending: dict[int, Pending] = {}
        self.reports: list[Report] | None = None
        """Where to keep the engine's reports, for those who measure; None: nowhere."""

    def __enter__(self) -> "Translator":
        self.engine.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def submit(
        self, sentences: Sequence[Sentence], options: Options = GREEDY, **arguments: Any
    ) -> Pending:
        """Queue a request; further arguments are those of ``Engine.submit``."""
        pending = Pending(len(sentences))
        with self._lock:  # or an answer could come before we know whose it is
            pending.request = self.engine.submit(sentences, options, **arguments)
            self._pending[pending.request] = pending
        return pending

    def translate(
        self, sentences: Sequence[Sentence], options: Options = GREEDY, **arguments: Any
    ) -> list[Answer]:
        """Submit and wait."""
        return self.submit(sentences, options, **arguments).result()

    def _deliver(self, report: Report) -> None:
        complete: list[Pending] = []
        with self._lock:
            if self.reports is not None:
                self.reports.append(report)
            for answer in report.answers:
                pending = self._pending[answer.ticket.request]
                if pending.put(answer):
                    del self._pending[answer.ticket.request]
                    complete.append(pending)
        for pending in complete:
            pending.complete()
