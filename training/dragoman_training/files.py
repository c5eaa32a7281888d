"""Files and directories that appear whole or not at all, whenever the process dies."""

import fcntl
import gzip
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, BinaryIO

_PARTIAL = ".partial"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Replace a small file in one step."""
    with staged_file(path) as file:
        file.write(text.encode())


@contextmanager
def staged_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file aside; it takes its name when the block ends without an error.

    One that is already there is replaced; a link stays, and so does a device.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    staging = path.with_name(f".{path.name}{_PARTIAL}")
    try:
        with staging.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        staging.replace(path)
    except BaseException:
        staging.unlink(missing_ok=True)
        raise
    _sync(path.parent)


@contextmanager
def staged_text(path: Path) -> Iterator[IO[bytes]]:
    """As ``staged_file``; compressed where the name ends with ``.gz``."""
    with staged_file(path) as file, ExitStack() as stack:
        if path.suffix == ".gz":
            # Without a time and a name in it, the same text makes the same file.
            yield stack.enter_context(
                gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # type: ignore[arg-type]
            )
        else:
            yield file


@contextmanager
def made_directory(path: Path) -> Iterator[None]:
    """Make a directory and its parents; after an error, those that were made and are empty go."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for directory in missing:
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()
        raise


@contextmanager
def staged_directory(path: Path) -> Iterator[Path]:
    """Fill a directory aside; it takes its name when the block ends without an error.

    One that is already there is replaced. After an error nothing is left of the new one. Its files
    may be read and written by whom the user's umask allows, whatever wrote them.
    """
    staging = path.with_name(f".{path.name}{_PARTIAL}")
    with made_directory(path.parent):
        remove(staging)
        try:
            staging.mkdir()
            yield staging
            for file in staging.rglob("*"):
                if file.is_file():
                    # safetensors makes files that only their owner may read. The mode of the
                    # directory tells the umask; asking for that would change it for a moment.
                    file.chmod(staging.stat().st_mode & 0o666)
                _sync(file)
            _sync(staging)
            _replace(staging, path)
        except BaseException:
            remove(staging)
            raise
    _sync(path.parent)


def _replace(staging: Path, path: Path) -> None:
    """Give a directory its name. Where there is one already that takes two steps: between them
    there is none, but never half of one."""
    old = path.with_name(f".{path.name}.old{_PARTIAL}")
    if path.exists():
        remove(old)
        path.rename(old)
    staging.rename(path)
    remove(old)


@contextmanager
def locked_directory(path: Path) -> Iterator[bool]:
    """Hold a directory for this process alone; False where another process holds it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except BlockingIOError:
            mine = False
        yield mine
    finally:
        os.close(descriptor)


def remove_partial(directory: Path) -> None:
    """Clear what a killed process left behind."""
    for leftover in directory.glob(f".*{_PARTIAL}"):
        remove(leftover)


def remove(path: Path) -> None:
    """Remove a file or directory, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
