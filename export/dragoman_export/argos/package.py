"""The files of an Argos package: a zip archive of one directory, or that directory unpacked.

Nothing is ever unpacked to disk, and no file is read before its size is checked. Whatever is wrong
is told in a line that names the package.
"""

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dragoman_export.errors import ExportError

_MEBIBYTE = 1 << 20
MAX_MODEL_BYTES = 4096 * _MEBIBYTE
"""Most bytes of a file with weights."""
MAX_FILE_BYTES = 16 * _MEBIBYTE
"""Most bytes of any other file that is read."""
_MAX_DIRECTORY_BYTES = _MEBIBYTE
"""Most bytes of an archive's own list of files. Python reads it as a whole before we see any."""
_MAX_RATIO = 50
"""Most bytes that one byte of a file in an archive may become, where they are more than are read of
small files. Weights hardly shrink."""
_END, _END_BYTES, _LOCATOR, _LOCATOR_BYTES = b"PK\5\6", 22, b"PK\6\7", 20
_MAX_COMMENT_BYTES = 0xFFFF
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Package:
    """An Argos package that is open for reading."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        """Name of the package's directory, as ``translate-zh_en-1_9``."""

    def has(self, name: str) -> bool:
        """Tell whether there is a file of this name."""
        raise NotImplementedError

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        raise NotImplementedError

    def open(self, name: str) -> IO[bytes]:
        """Open a file."""
        raise NotImplementedError

    def checked_size(self, name: str, most: int = MAX_FILE_BYTES) -> int:
        """Return the bytes of a file. Raises ``ExportError`` for one that is missing or large."""
        if not self.has(name):
            raise ExportError(f"{self.path}: has no {name}")
        size = self.size(name)
        if size > most:
            raise ExportError(f"{self.path}: {name} has {size} bytes: at most {most} are read")
        return size

    def content(self, name: str) -> bytes:
        """Read a file."""
        size = self.checked_size(name)
        with self.stream(name) as stream:
            data = stream.read(size)
        if len(data) < size:
            raise ExportError(f"{self.path}: {name} is damaged")
        return data

    def table(self, name: str) -> dict[str, Any]:
        """Read a file with a JSON object."""
        table = self.json(name)
        if not isinstance(table, dict):
            raise ExportError(f"{self.path}: {name} is not a JSON object")
        return table

    def json(self, name: str) -> Any:
        """Read a file with JSON."""
        try:
            return json.loads(self.content(name))
        except (ValueError, RecursionError):
            raise ExportError(f"{self.path}: {name} is not JSON") from None

    def text(self, name: str) -> str:
        """Read a file with text."""
        try:
            return self.content(name).decode()
        except UnicodeDecodeError:
            raise ExportError(f"{self.path}: {name} is not UTF-8") from None

    @contextmanager
    def stream(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file; what can't be read of it is told in one line."""
        try:
            with self.open(name) as stream:
                yield stream
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
            raise ExportError(f"{self.path}: {name} is damaged") from None
        except OSError as error:
            raise ExportError(f"{self.path}: {name}: {error.strerror or error}") from None


class _Directory(Package):
    def __init__(self, path: Path) -> None:
        super().__init__(path, path.resolve().name)

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def open(self, name: str) -> IO[bytes]:
        return (self.path / name).open("rb")


class _Archive(Package):
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        entries = _checked_entries(path, archive)
        roots = {name.parts[0] for name in entries if len(name.parts) > 1}
        if len(roots) != 1:
            raise ExportError(f"{path}: not one directory in an archive, as a package is")
        (root,) = roots
        super().__init__(path, root)
        self._archive = archive
        self._entries = {
            str(name.relative_to(root)): entry
            for name, entry in entries.items()
            if len(name.parts) > 1
        }

    def has(self, name: str) -> bool:
        return name in self._entries

    def size(self, name: str) -> int:
        entry = self._entries[name]
        size = entry.file_size
        if size > max(MAX_FILE_BYTES, _MAX_RATIO * entry.compress_size):
            raise ExportError(
                f"{self.path}: {name} would become {size} bytes of {entry.compress_size}"
            )
        return size

    def open(self, name: str) -> IO[bytes]:
        return self._archive.open(self._entries[name])


@contextmanager
def open_package(path: Path) -> Iterator[Package]:
    """Open a package. Raises ``ExportError`` if it is none."""
    if path.is_dir():
        yield _Directory(path)
        return
    try:
        with path.open("rb") as file:
            _check_directory(path, file)
            with zipfile.ZipFile(file) as archive:
                yield _Archive(path, archive)
    except FileNotFoundError:
        raise ExportError(f"{path}: no such file") from None
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error):
        raise ExportError(f"{path}: not a zip archive, or a damaged one") from None


def _check_directory(path: Path, file: IO[bytes]) -> None:
    """Raise ``ExportError`` if an archive's list of files is too long to be read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _MAX_COMMENT_BYTES - _END_BYTES - _LOCATOR_BYTES))
    tail = file.read()
    at = tail.rfind(_END)
    # As zipfile looks for it: at the very end first, and anywhere in a comment's reach then.
    if tail[-_END_BYTES:-18] == _END and tail.endswith(b"\0\0"):
        at = len(tail) - _END_BYTES
    if at < 0 or len(tail) - at < _END_BYTES:
        raise ExportError(f"{path}: not a zip archive, or a damaged one")
    if tail[max(0, at - _LOCATOR_BYTES) : at].startswith(_LOCATOR):
        raise ExportError(f"{path}: a zip64 archive, which no package needs")
    (listed,) = struct.unpack_from("<I", tail, at + 12)
    if listed > _MAX_DIRECTORY_BYTES:
        raise ExportError(f"{path}: its list of files has {listed} bytes, which no package needs")
    file.seek(0)


def _checked_entries(path: Path, archive: zipfile.ZipFile) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """Return the files of an archive by name. Raises ``ExportError`` for one that means harm."""
    entries: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        name = PurePosixPath(entry.filename)
        if name.is_absolute() or ".." in name.parts or "\\" in entry.filename:
            raise ExportError(f"{path}: {entry.filename!r} leads out of the package")
        if not entry.filename:
            raise ExportError(f"{path}: has a file without a name")
        if entry.is_dir():
            continue
        if name in entries:
            raise ExportError(f"{path}: has {entry.filename!r} twice")
        if entry.flag_bits & 1:
            raise ExportError(f"{path}: {entry.filename!r} is encrypted")
        if entry.compress_type not in _METHODS:
            raise ExportError(
                f"{path}: {entry.filename!r} is compressed in another way than deflate"
            )
        entries[name] = entry
    return entries
