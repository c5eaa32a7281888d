"""Observers that store what a run reports: as JSON lines, and for TensorBoard."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from torch.utils.tensorboard import SummaryWriter

from dragoman_training.errors import CheckpointError
from dragoman_training.files import write_text
from dragoman_training.report.records import Observer, StepRecord, ValidationRecord

METRICS = "metrics.jsonl"


def read_metrics(run: Path) -> tuple[list[StepRecord], list[ValidationRecord]]:
    """All that a run has logged."""
    path = run / METRICS
    if not path.exists():
        raise CheckpointError(f"{run}: not a training run, it has no {METRICS}")
    steps: list[StepRecord] = []
    validations: list[ValidationRecord] = []
    try:
        for line in _whole_lines(path):
            record = json.loads(line)
            if record.pop("kind") == "step":
                steps.append(StepRecord(**record))
            else:
                validations.append(ValidationRecord(**record))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise CheckpointError(f"{path}: not the log of a training run") from None
    return steps, validations


class MetricsLog(Observer):
    """Appends each record as a line of JSON."""

    def __init__(self, run: Path) -> None:
        self._path = run / METRICS
        self._file: TextIO | None = None

    def started(self, facts: dict[str, Any], step: int, max_steps: int) -> None:
        if self._path.exists():
            # What was logged after the checkpoint will happen again.
            kept = [line for line in _whole_lines(self._path) if json.loads(line)["step"] <= step]
            write_text(self._path, "".join(line + "\n" for line in kept))
        self._file = self._path.open("a", encoding="utf-8")

    def stepped(self, step: int, record: StepRecord | None) -> None:
        if record is not None:
            self._write({"kind": "step", **asdict(record)})

    def validated(self, record: ValidationRecord) -> None:
        self._write({"kind": "validation", **asdict(record)})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._file.flush()


class TensorBoardLog(Observer):
    """Scalars under ``train/`` and ``valid/``, and a few translations as text."""

    def __init__(self, run: Path) -> None:
        self._directory = run / "tensorboard"
        self._writer: SummaryWriter | None = None

    def started(self, facts: dict[str, Any], step: int, max_steps: int) -> None:
        self._writer = SummaryWriter(str(self._directory), purge_step=step + 1)

    def stepped(self, step: int, record: StepRecord | None) -> None:
        if record is not None:
            self._scalars("train", step, asdict(record))

    def validated(self, record: ValidationRecord) -> None:
        self._scalars("valid", record.step, asdict(record))
        for name, figures in record.by_text.items():
            self._scalars(f"valid/{name}", record.step, figures)
        samples = "\n\n".join(
            f"{source}  \n→ {translation}  \n= {reference}"
            for source, reference, translation in record.samples
        )
        if self._writer is not None:
            self._writer.add_text("valid/samples", samples, record.step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _scalars(self, group: str, step: int, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if self._writer is not None and isinstance(value, float):
                self._writer.add_scalar(f"{group}/{name}", value, step)


def _whole_lines(path: Path) -> list[str]:
    """A process that was killed may have left half a line at the end."""
    # Not splitlines: text inside a line may hold characters that it takes for an end of line.
    *whole, _ = path.read_text(encoding="utf-8").split("\n")
    return whole
