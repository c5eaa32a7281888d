"""What is translated of a document so far, kept beside the file that it will become."""

import errno
import json
import os
import time
from pathlib import Path
from types import TracebackType

from dragoman_cli.line_files import lock
from dragoman_client._errors import ConfigurationError

_SYNC_EVERY_S = 1.0
"""Seconds of work that a machine that goes down may cost."""

Key = tuple[str, bool]
"""A text, and whether it has tags."""


class Journal:
    """Translations by their texts, written down as they come.

    The first line says what they were made from; with ``resume`` those that are there are used
    again if that is the same. The file goes when the document is complete.
    """

    def __init__(
        self, output: Path, made_from: dict[str, str], *, resume: bool, overwrite: bool
    ) -> None:
        self._output = output
        self._path = output.with_name(f".{output.name}.journal")
        self.done: dict[Key, str] = {}
        self._header = json.dumps(made_from, sort_keys=True)
        if not output.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such directory", str(output.parent))
        self._file = self._path.open("a+b", buffering=0)
        try:
            lock(self._file, output)
            self._begin(resume=resume, overwrite=overwrite)
        except BaseException:
            self._file.close()
            raise
        self._synced = time.monotonic()

    def _begin(self, *, resume: bool, overwrite: bool) -> None:
        self._file.seek(0)
        data = b"" if overwrite else self._file.read()
        whole = data[: data.rfind(b"\n") + 1]  # a last line that was cut off goes
        lines = whole.split(b"\n")[:-1]
        if len(lines) > 1 and not resume:
            raise ConfigurationError(
                f"{self._output}: {len(lines) - 1:,} segments of a run that was cut off are there: "
                "--resume goes on after them, and --overwrite begins anew"
            )
        if not lines or lines[0].decode(errors="replace") != self._header:
            if len(lines) > 1:
                raise ConfigurationError(
                    f"{self._output}: what was begun there was made from another text or with "
                    "other options; --overwrite begins anew"
                )
            os.ftruncate(self._file.fileno(), 0)
            self._write(f"{self._header}\n".encode())
            return
        try:
            for line in lines[1:]:
                text, has_tags, translation = json.loads(line)
                self.done[text, has_tags] = translation
        except (ValueError, TypeError):
            raise ConfigurationError(f"{self._path}: is damaged; --overwrite begins anew") from None
        os.ftruncate(self._file.fileno(), len(whole))

    def add(self, key: Key, translation: str) -> None:
        """Write down a translation."""
        self.done[key] = translation
        self._write(json.dumps([*key, translation], ensure_ascii=False).encode() + b"\n")
        if time.monotonic() - self._synced >= _SYNC_EVERY_S:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._output)) from None

    def finish(self) -> None:
        """Remove the file: the document is complete."""
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self.done:
                os.fsync(self._file.fileno())
            elif kind is not None:
                self.finish()
        finally:
            self._file.close()


def write_aside(path: Path, data: bytes) -> None:
    """Write a file such that its name is taken only when it is complete, and on disk."""
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        partial.unlink(missing_ok=True)
