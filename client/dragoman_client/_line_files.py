"""Long files of lines: read line by line, written aside, and gone on with after an interruption."""

import hashlib
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO

from dragoman_client._errors import ConfigurationError

_SYNC_EVERY = 1000
"""Lines, so that a machine that goes down costs no more than these."""


def read_lines(file: IO[bytes], name: str, skip: int = 0) -> Iterator[str]:
    """Lines as they are, with what ends them."""
    for number, line in enumerate(islice(file, skip, None), start=skip + 1):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise ConfigurationError(f"{name}:{number}: not UTF-8") from None


class ResumableOutput:
    """A file that takes its name when it is complete.

    Until then its lines are in ``.NAME.partial``, beside a note of what they were made from; with
    ``resume``, lines that are there already are kept and counted in ``done``.
    """

    def __init__(self, path: Path, made_from: dict[str, str], *, resume: bool) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.partial")
        self._note = path.with_name(f".{path.name}.partial.json")
        self.done = self._take_up(made_from) if resume else 0
        if not self.done:
            self._note.write_text(json.dumps(made_from))
        self._file = self._partial.open("ab" if self.done else "wb")
        self._written = 0

    def __enter__(self) -> "ResumableOutput":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sync()
        self._file.close()
        if kind is None:
            self._partial.replace(self._path)
            self._note.unlink(missing_ok=True)

    def write(self, line: str) -> None:
        self._file.write(line.encode())
        self._written += 1
        if self._written % _SYNC_EVERY == 0:
            self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _take_up(self, made_from: dict[str, str]) -> int:
        """How many lines are there already; a last one that is not whole goes."""
        if not self._partial.exists():
            return 0
        try:
            before = json.loads(self._note.read_text())
        except (OSError, ValueError):
            before = None
        if before != made_from:
            raise ConfigurationError(
                f"{self._path}: what was begun there was made from another text or with other "
                "options; without --resume it is begun anew"
            )
        whole, lines = 0, 0
        with self._partial.open("rb+") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                lines += 1
            file.truncate(whole)
        return lines


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
