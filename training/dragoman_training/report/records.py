"""What a training run reports, as plain numbers. Who shows or stores them is not known here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """Means over the steps since the last record."""

    step: int
    epoch: int
    loss: float
    """Per target token, smoothed: what is minimised."""
    perplexity: float
    """Without smoothing."""
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    """Target tokens, over all processes."""


@dataclass(frozen=True, kw_only=True)
class ValidationRecord:
    step: int
    loss: float
    """Per target token, without smoothing."""
    perplexity: float
    bleu: float | None = None
    chrf: float | None = None
    exact: float | None = None
    bleu_signature: str | None = None
    chrf_signature: str | None = None
    is_best: bool = False
    samples: tuple[tuple[str, str, str], ...] = ()
    """A few sentences: source, reference, translation."""
    by_text: dict[str, dict[str, float]] = field(default_factory=dict)
    """Where there are several validation texts, loss, BLEU and chrF of each, by its name."""

    def summary(self) -> str:
        """In a line, for people."""
        text = f"validation loss {self.loss:.3f}  perplexity {self.perplexity:.2f}"
        if self.bleu is not None:
            text += f"  BLEU {self.bleu:.1f}  chrF {self.chrf:.1f}  exact {self.exact:.1f}%"
        for name, figures in self.by_text.items():
            text += f"  {name} {figures['bleu']:.1f}" if "bleu" in figures else ""
        return text

    def goodness(self, metric: str) -> float:
        """The chosen metric, such that more is better."""
        value = getattr(self, metric)
        return -value if metric == "loss" else float(value)


class Observer:
    """Told what happens in a run; each kind of observer takes up what it cares for.

    Only the first process of several has observers that do something.
    """

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """A stage of the preparation has come so far."""

    def prepared(self) -> None:
        """The preparation has ended, well or not."""

    def started(self, facts: dict[str, Any], step: int, max_steps: int) -> None:
        """The loop begins after this step."""

    def stepped(self, step: int, record: StepRecord | None) -> None:
        """A step is done; there is a record where one was due."""

    def validating(self, done: int, total: int) -> None:
        """So many sentences of the validation are translated."""

    def validated(self, record: ValidationRecord) -> None:
        """A validation is done."""

    def saved(self, path: Path) -> None:
        """A checkpoint is on disk."""

    def noted(self, message: str) -> None:
        """Something that a person should know."""

    def close(self) -> None:
        """The run ends, well or not."""


class Several(Observer):
    """Passes everything on to several observers."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        for observer in self._observers:
            observer.preparing(stage, done, total)

    def prepared(self) -> None:
        for observer in self._observers:
            observer.prepared()

    def started(self, facts: dict[str, Any], step: int, max_steps: int) -> None:
        for observer in self._observers:
            observer.started(facts, step, max_steps)

    def stepped(self, step: int, record: StepRecord | None) -> None:
        for observer in self._observers:
            observer.stepped(step, record)

    def validating(self, done: int, total: int) -> None:
        for observer in self._observers:
            observer.validating(done, total)

    def validated(self, record: ValidationRecord) -> None:
        for observer in self._observers:
            observer.validated(record)

    def saved(self, path: Path) -> None:
        for observer in self._observers:
            observer.saved(path)

    def noted(self, message: str) -> None:
        for observer in self._observers:
            observer.noted(message)

    def close(self) -> None:
        for observer in self._observers:
            observer.close()
