"""Long files of lines: read line by line, written aside, and gone on with after an interruption."""

import errno
import fcntl
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import islice
from pathlib import Path
from types import TracebackType

from dragoman_client._errors import CallError, ConfigurationError, DragomanError

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


class StoppedError(DragomanError):
    """Ctrl-C in the midst of a file, whose lines are kept."""

    exit_code = 128 + signal.SIGINT


class ResumableOutput:
    """A file that takes its name when it is complete.

    Until then its lines are in ``.NAME.partial``, beside a note of what they were made from, and
    one of the lines that failed; with ``resume``, lines that are there already are kept and counted
    in ``done``, and those of them that failed in ``failed``. Nothing that is there already is lost
    unless ``overwrite`` says so.
    """

    def __init__(
        self, path: Path, made_from: dict[str, str], *, resume: bool, overwrite: bool
    ) -> None:
        _check_target(path)
        self._path, self._partial, self._note, self._failures = _names(path)
        self._can_resume = "text" in made_from
        self.done = self.failed = 0
        with self._naming_it():
            self._file = self._partial.open("ab", buffering=0)
            try:
                lock(self._file, self._path)
                self._begin(made_from, resume=resume, overwrite=overwrite)
            except BaseException:
                self._file.close()
                raise
        self._buffer: list[bytes] = []
        self._written = 0

    def _begin(self, made_from: dict[str, str], *, resume: bool, overwrite: bool) -> None:
        lines = 0 if overwrite else _count_lines(self._partial)
        if lines and not resume:
            can = "--resume goes on after them" if self._can_resume else "they can't be resumed"
            raise ConfigurationError(
                f"{self._path}: {lines:,} lines of a run that was cut off are there: {can}, and "
                "--overwrite begins anew"
            )
        if not lines and not overwrite and self._path.exists():
            self._remove()
            nothing = ", and there is nothing to resume" if resume else ""
            raise ConfigurationError(
                f"{self._path}: is there already{nothing}; --overwrite replaces it"
            )
        if lines:
            self._take_up(made_from)
        if not self.done:
            # In this order: lines that are there are always of the note that is there.
            os.ftruncate(self._file.fileno(), 0)
            self._failures.unlink(missing_ok=True)
            self._note.write_text(json.dumps(made_from))

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
                if kind is None:
                    self._partial.replace(self._path)
                    self._note.unlink(missing_ok=True)
                    self._failures.unlink(missing_ok=True)
                elif not self.done + self._written:
                    self._remove()
            finally:
                self._file.close()
        if self.done + self._written:
            self._say_how_to_go_on(error)

    def _say_how_to_go_on(self, error: BaseException | None) -> None:
        """Raise or change an error that ended a run in its midst."""
        lines = self.done + self._written
        if self._can_resume:
            how = "the same command with --resume goes on after them"
        else:
            how = f"they are in {self._partial}, and can't be resumed without --file"
        if isinstance(error, KeyboardInterrupt):
            raise StoppedError(f"stopped after {lines:,} lines: {how}") from None
        if isinstance(error, CallError):
            error.message = f"{error.message}; {lines:,} lines are done: {how}"

    def _remove(self) -> None:
        for each in (self._partial, self._note, self._failures):
            each.unlink(missing_ok=True)

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
        try:
            before = json.loads(self._note.read_text())
        except (OSError, ValueError):
            before = None
        if before != made_from:
            raise ConfigurationError(
                f"{self._path}: what was begun there was made from another text or with other "
                "options; --overwrite begins anew"
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


def lock(file: FileIO, output: Path) -> None:
    """Keep other runs away from a file, for as long as it is open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(f"{output}: another run is writing it") from None
    except OSError:  # a file system without locks
        pass


def check_distinct(source: Path, output: Path | None) -> None:
    """Raise where a file would be read and written at once, by whatever names and links.

    ``output`` is None for standard output.
    """
    if not source.exists():
        return
    if output is None:
        if sys.stdout is not None and os.path.samestat(source.stat(), os.fstat(1)):
            raise ConfigurationError(f"{source}: standard output is the same file")
        return
    for each in _names(output):
        if each.exists() and source.samefile(each):
            if each == _names(output)[0]:
                raise ConfigurationError(
                    f"{output}: is the file that is translated; give --output another name"
                )
            raise ConfigurationError(
                f"{source}: would be replaced while {output} is written; give it another name"
            )


def _names(path: Path) -> tuple[Path, Path, Path, Path]:
    """Return the names of an output, of its lines until it is complete, and of notes on them."""
    path = Path(os.path.realpath(path))  # what a link points to is to be replaced
    partial = path.with_name(f".{path.name}.partial")
    return path, partial, Path(f"{partial}.json"), Path(f"{partial}.failed")


def _count_lines(path: Path) -> int:
    """Return how many whole lines a file has."""
    with path.open("rb") as file:
        return sum(line.endswith(b"\n") for line in file)


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
