"""Parallel text from files: one sentence a line, plain or gzip; or both sides as columns of a TSV.

Knows nothing of tokens.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from dragoman_training.errors import CorpusError


class Pair(NamedTuple):
    source: str
    target: str


@dataclass(frozen=True)
class ParallelText:
    """Files whose lines are translations of each other.

    With targets, line i of a source file belongs to line i of the target file at the same place of
    the list. Without, each file holds both sides, separated by a tab.
    """

    sources: tuple[Path, ...]
    targets: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if self.targets and len(self.sources) != len(self.targets):
            raise CorpusError(
                f"{len(self.sources)} source files but {len(self.targets)} target files: "
                "give one target file for each source file, or none for TSV files"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        return self.sources + self.targets

    def parts(self) -> Iterator["ParallelText"]:
        """Return the text of each source file by itself."""
        for number, source in enumerate(self.sources):
            yield ParallelText((source,), self.targets[number : number + 1])

    def __iter__(self) -> Iterator[Pair]:
        if not self.targets:
            for path in self.sources:
                yield from _read_columns(path)
        for source, target in zip(self.sources, self.targets, strict=False):
            yield from _read_side_by_side(source, target)


@dataclass(frozen=True)
class LabelledText:
    """Parallel text with a label for each pair.

    Line i of a label file belongs to line i of the source file at the same place of the list.
    Without label files, every label is empty.
    """

    text: ParallelText
    labels: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if self.labels and len(self.labels) != len(self.text.sources):
            raise CorpusError(
                f"{len(self.text.sources)} source files but {len(self.labels)} label files: "
                "give one label file for each source file, or none"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        return self.text.files + self.labels

    def __iter__(self) -> Iterator[tuple[Pair, str]]:
        if not self.labels:
            for pair in self.text:
                yield pair, ""
            return
        for text, labels in zip(self.text.parts(), self.labels, strict=True):
            yield from _read_labelled(text, labels)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or gzip, without their ends."""
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(path.open("rb"))
            is_gzip = raw.peek(2)[:2] == b"\x1f\x8b"
            lines = stack.enter_context(gzip.open(raw)) if is_gzip else raw
            for number, line in enumerate(lines, start=1):
                yield _decode(line, path, number)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CorpusError(f"{path}: damaged gzip file ({error})") from None
        except FileNotFoundError:
            raise CorpusError(f"{path}: no such file") from None
        except OSError as error:
            raise CorpusError(f"{path}: {error.strerror or error}") from None


def check_readable(paths: Sequence[Path]) -> None:
    """Find a missing file before hours of work on the others."""
    for path in paths:
        for _ in read_lines(path):
            break


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        raise CorpusError(f"{path}: line {number}: not UTF-8 (byte 0x{bad:02x})") from None
    return text.removesuffix("\n").removesuffix("\r")


def _read_side_by_side(source: Path, target: Path) -> Iterator[Pair]:
    sources, targets = read_lines(source), read_lines(target)
    for number, (left, right) in enumerate(zip_longest(sources, targets), start=1):
        if left is None or right is None:
            shorter, longer, rest = (
                (source, target, targets) if left is None else (target, source, sources)
            )
            total = number + sum(1 for _ in rest)
            raise CorpusError(
                f"{shorter} has {number - 1} lines but {longer} has {total}: they must be equal"
            )
        yield Pair(left, right)


def _read_labelled(text: ParallelText, labels: Path) -> Iterator[tuple[Pair, str]]:
    for number, (pair, label) in enumerate(zip_longest(text, read_lines(labels)), start=1):
        if pair is None or label is None:
            which = "more" if pair is None else "fewer"
            raise CorpusError(
                f"{labels} has {which} lines than {text.sources[0]} (line {number}): "
                "they must be equal"
            )
        yield pair, label


def _read_columns(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise CorpusError(
                f"{path}: line {number}: no tab. Without target files, each line must hold "
                "source and target separated by a tab"
            )
        yield Pair(columns[0], columns[1])
