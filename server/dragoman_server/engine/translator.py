"""An engine to call from the same process: a request in, a future out."""

import math
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.engine.core import GREEDY, Answer, Options, Report, Sentence
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings


class Pending(Future[list[Answer]]):
    """The answers of a request, in the order of its sentences, once all are there.

    ``Future.cancel`` does nothing: ``Engine.cancel(pending.request)`` cancels a request, and its
    answers say so.
    """

    def __init__(self, sentences: int) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self.request = -1
        """Number of the request, once it is queued."""
        self._missing = sentences
        self._answers: list[Answer | None] = [None] * sentences

    def put(self, answer: Answer) -> bool:
        """Take an answer. Returns whether it was the last."""
        assert self._answers[answer.ticket.sentence] is None, "answered twice"
        self._answers[answer.ticket.sentence] = answer
        self._missing -= 1
        return not self._missing

    def complete(self) -> None:
        """Give all answers to whoever waits."""
        self.set_result([answer for answer in self._answers if answer is not None])


class Translator:
    """An engine and the requests that wait for it.

    Use it as a context manager: the engine runs from entering to leaving.
    """

    def __init__(self, bundle: RunnableBundle, settings: EngineSettings | None = None) -> None:
        self.engine = Engine(bundle, settings or EngineSettings(), self._deliver)
        self._lock = threading.Lock()
        self._pending: dict[int, Pending] = {}
        self.reports: list[Report] | None = None
        """List that the engine's reports are added to, for those who measure; None keeps none."""

    def __enter__(self) -> "Translator":
        self.engine.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def submit(
        self,
        sentences: Sequence[Sentence],
        options: Options = GREEDY,
        *,
        flow: int | None = None,
        priority: int = 0,
        deadline: float = math.inf,
    ) -> Pending:
        """Queue a request as ``Engine.submit`` does, and return its future."""
        pending = Pending(len(sentences))

        def expect(request: int) -> None:
            pending.request = request
            with self._lock:
                self._pending[request] = pending

        self.engine.submit(
            sentences, options, flow=flow, priority=priority, deadline=deadline, queued=expect
        )
        return pending

    def translate(self, sentences: Sequence[Sentence], options: Options = GREEDY) -> list[Answer]:
        """Submit a request, wait, and return its answers."""
        return self.submit(sentences, options).result()

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
