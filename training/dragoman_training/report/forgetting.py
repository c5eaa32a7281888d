"""What a model that was trained on gained and lost: BLEU of each validation text, then and now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman_training.report.records import ValidationRecord


@dataclass(frozen=True)
class Change:
    """BLEU of one validation text, of the model that training began with and of another."""

    text: str
    before: float
    now: float

    @property
    def gain(self) -> float:
        return self.now - self.before

    def __str__(self) -> str:
        return f"{self.text} {self.before:.1f} → {self.now:.1f} ({self.gain:+.1f})"


def bleu_by_text(record: ValidationRecord, names: Sequence[str]) -> dict[str, float]:
    """Return the BLEU of each validation text; none where nothing was translated."""
    if record.bleu is None:
        return {}
    if record.by_text:
        return {name: figures["bleu"] for name, figures in record.by_text.items()}
    return {names[0]: record.bleu}


def changes(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """Return what became of each text that was measured both times."""
    return [Change(text, before[text], bleu) for text, bleu in now.items() if text in before]


def forgetting_warning(found: Sequence[Change], allowed: float) -> str:
    """Return a warning that names the texts that lost more than is allowed; empty if none did."""
    lost = [str(change) for change in found if allowed and -change.gain > allowed]
    if not lost:
        return ""
    return (
        f"the model forgets what it could do, in BLEU: {', '.join(lost)}. Fewer steps, a lower "
        "training.learning_rate or a higher checkpoints.initial_share keep more of it"
    )
