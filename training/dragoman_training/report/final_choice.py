"""Which of a run's models is its final one: the mean of checkpoints, or the best checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_training.report.records import ValidationRecord

_NAMES = {"bleu": "BLEU", "chrf": "chrF", "loss": "loss"}


@dataclass(frozen=True)
class Candidate:
    """A model that may become the final one."""

    steps: Sequence[int]
    """Steps of the checkpoints whose mean it is; one step is that checkpoint itself."""
    quality: ValidationRecord | None
    """What it reached on the validation text; None where there is none."""

    @property
    def name(self) -> str:
        if len(self.steps) == 1:
            return f"step {self.steps[0]}"
        return f"the mean of steps {', '.join(map(str, self.steps))}"

    def to_dict(self) -> dict[str, Any]:
        """Return what a final model says about this candidate."""
        figures = {name: getattr(self.quality, name, None) for name in ("loss", "bleu", "chrf")}
        return {"steps": list(self.steps), **figures}


def choose(candidates: Sequence[Candidate], metric: str) -> tuple[Candidate, str]:
    """Return the best of the candidates by their validation, and the reason in a line.

    Of equals the first is taken, and so it is where nothing was measured.
    """
    measured = [c.quality.goodness(metric) for c in candidates if c.quality is not None]
    if len(measured) < len(candidates) or len(candidates) == 1:
        chosen = candidates[0]
        why = "" if measured else ": there is no validation text to choose by"
        return chosen, f"the final model is {chosen.name}{why}"
    chosen = candidates[measured.index(max(measured))]
    (other,) = (each for each in candidates if each is not chosen)
    figures = (_figure(each.quality, metric) for each in (chosen, other))
    ours, theirs = figures
    return chosen, (
        f"the final model is {chosen.name}: {_NAMES[metric]} {ours} on the validation text, "
        f"{theirs} of {other.name}"
    )


def _figure(quality: ValidationRecord | None, metric: str) -> str:
    return f"{getattr(quality, metric):.{3 if metric == 'loss' else 2}f}"
