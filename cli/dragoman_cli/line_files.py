"""Long files of lines: read line by line, written aside, and gone on with after an interruption."""

import errno
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType

from dragoman_client._errors import ConfigurationError, DragomanError

_WRITE_EVERY = 20
"""Lines, so that a process that is killed costs no more than these."""
_SYNC_EVERY = 1000
"""Lines, so that a machine that goes down costs no more than these."""


def read_lines(lines: Iterable[bytes], name: str, skip: int = 0) -> Iterator[str]:
    """Lines as they are, with what ends them."""
    for number, line in enumerate(islice(lines, skip, None), start=skip + 1):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise ConfigurationError(f"{name}:{number}: not UTF-8") from None


def descriptor_lines(descriptor: int) -> Iterator[bytes]:
    """Lines of a file, a pipe or a terminal as they come.

    Python's own reader holds a lock while it waits; a process that ends while a thread waits for
    the next line would be aborted because of it.
    """
    begun: list[bytes] = []  # of a line that has not ended yet
    while chunk := os.read(descriptor, 1 << 16):
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join((*begun, line, b"\n"))
            begun.clear()
        if rest:
            begun.append(rest)
    if begun:
        yield b"".join(begun)


class StandardOutput:
    """Unbuffered, so that each line is there at once, and nothing is left to fail at the end."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "is closed", "standard output")
        self.done = self.failed = 0

    def write(self, text: str) -> None:
        left = memoryview(text.encode())
        try:
            while left:
                left = left[os.write(1, left) :]
        except BrokenPipeError:
            raise ClosedPipeError from None
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None

    def fail(self, number: int) -> None:
        self.failed += 1


class ClosedPipeError(DragomanError):
    """Who read the output, as ``head``, has enough: no failure, so no message."""

    exit_code = 128 + signal.SIGPIPE  # as a shell says of any other filter


class ResumableOutput:
    """A file that takes its name when it is complete.

    Until then its lines are in ``.NAME.partial``, beside a note of what they were made from, and
    one of the lines that failed; with ``resume``, lines that are there already are kept and counted
    in ``done``, and those of them that failed in ``failed``.
    """

    def __init__(self, path: Path, made_from: dict[str, str], *, resume: bool) -> None:
        self._path = Path(os.path.realpath(path))  # what a link points to is to be replaced
        _check_target(path)
        self._partial = self._path.with_name(f".{self._path.name}.partial")
        self._note = self._path.with_name(f".{self._path.name}.partial.json")
        self._failures = self._path.with_name(f".{self._path.name}.partial.failed")
        self.done = self.failed = 0
        with self._naming_it():
            if resume:
                self._take_up(made_from)
            if not self.done:
                # In this order: lines that are there are always of the note that is there.
                self._partial.unlink(missing_ok=True)
                self._failures.unlink(missing_ok=True)
                self._note.write_text(json.dumps(made_from))
            self._file = self._partial.open("ab", buffering=0)
        self._buffer: list[bytes] = []
        self._written = 0

    def __enter__(self) -> "ResumableOutput":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._naming_it():
            try:
                if not isinstance(error, OSError):  # else it may be a disk that is full
                    self._sync()
            finally:
                self._file.close()
            if kind is None:
                self._partial.replace(self._path)
                self._note.unlink(missing_ok=True)
                self._failures.unlink(missing_ok=True)

    def write(self, line: str) -> None:
        with self._naming_it():
            self._buffer.append(line.encode())
            self._written += 1
            if self._written % _WRITE_EVERY == 0:
                self._flush()
            if self._written % _SYNC_EVERY == 0:
                self._sync()

    def fail(self, number: int) -> None:
        """This line, counted from 1, has no translation; to be said before it is written."""
        with self._naming_it(), self._failures.open("a") as file:
            file.write(f"{number}\n")
        self.failed += 1

    def _flush(self) -> None:
        left = memoryview(b"".join(self._buffer))
        self._buffer.clear()
        while left:
            left = left[self._file.write(left) :]

    @contextmanager
    def _naming_it(self) -> Iterator[None]:
        """Whoever gave a name should read it in an error, and not one of ours."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None

    def _sync(self) -> None:
        self._flush()
        os.fsync(self._file.fileno())

    def _take_up(self, made_from: dict[str, str]) -> None:
        """Count what is there already; a last line that is not whole goes."""
        if not self._partial.exists():
            return
        try:
            before = json.loads(self._note.read_text())
        except (OSError, ValueError):
            before = None
        if before != made_from:
            raise ConfigurationError(
                f"{self._path}: what was begun there was made from another text or with other "
                "options; without --resume it is begun anew"
            )
        whole = 0
        with self._partial.open("rb+") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                self.done += 1
            file.truncate(whole)
        if self._failures.exists():
            numbers = {int(line) for line in self._failures.read_text().split()}
            self.failed = sum(number <= self.done for number in numbers)


def _check_target(path: Path) -> None:
    """Not after hours: a name that can't be taken in the end."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory; name a file", str(path))
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"{path}: not a regular file; leave --output out, and use '>'")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory", str(path.parent))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
