"""The files of a model's directory, as Marian, Bergamot, Firefox and translateLocally have it.

A configuration of the decoder names them, if there is one; otherwise their own names do. Only files
of the directory itself are read, wherever a configuration says that they are.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, cast

from dragoman_export.errors import ExportError
from dragoman_export.marian.yaml_text import MAX_BYTES, read_table, shown

PACKED = ".gz"
_PREFERRED = ("config.intgemm8bitalpha.yml", "config.yml", "decoder.yml")
"""Configurations that are taken if there are several, the first that there is."""
_MODEL = re.compile(r"(model.*\.bin|.*\.intgemm.*\.bin|.*\.npz)(\.gz)?")
_OTHER_NPZ = re.compile(r".*\.(optimizer|orig)\.npz(\.gz)?")
"""What training leaves beside a model."""
_VOCABULARY = re.compile(r".*\.(spm|model)(\.gz)?")
_SOURCE = re.compile(r"(src|source).*")
_TARGET = re.compile(r"(trg|tgt|target).*")
_SHORTLIST = re.compile(r"lex.*\.(bin|txt|s2t)(\.gz)?|lex.*\.s2t\.gz")
_MAX_UNPACKED = 4 << 30
"""Most bytes that a packed file may have when it is unpacked."""
_CHUNK = 1 << 20
"""Bytes that are unpacked at a time."""


class ModelDirectory:
    """A directory with a model, its vocabularies and perhaps a shortlist."""

    def __init__(self, path: Path) -> None:
        """``path`` is the directory, or the configuration in it that is meant."""
        is_file = path.is_file()
        self.path = path.parent if is_file else path
        if not self.path.is_dir():
            raise ExportError(f"{path}: no such directory")
        try:
            self.names = sorted(file.name for file in self.path.iterdir() if file.is_file())
        except OSError as error:
            raise ExportError(f"{path}: {error.strerror}") from None
        self.config = self._config(path.name) if is_file else self._found_config()
        self.model = self._model()
        self.vocabularies = self._vocabularies()
        self.shortlist = self._shortlist()

    def content(self, name: str, max_bytes: int) -> bytes:
        """Read a file, unpacked. Raises ``ExportError`` if it is larger than it may be."""
        path = self.path / name
        try:
            with _opened(path) as file:
                content = file.read(max_bytes + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ExportError(f"{path}: {_reason(error)}") from None
        if len(content) > max_bytes:
            raise ExportError(f"{path}: larger than {max_bytes:,} bytes")
        return content

    @contextmanager
    def unpacked(self, name: str) -> Iterator[Path]:
        """Give a file's path, or if it is packed that of an unpacked copy, which goes away."""
        path = self.path / name
        if not name.endswith(PACKED):
            yield path
            return
        with TemporaryDirectory() as scratch:
            copy = Path(scratch) / name.removesuffix(PACKED)
            try:
                with _opened(path) as packed, copy.open("wb") as file:
                    while data := packed.read(_CHUNK):
                        file.write(data)
                        if file.tell() > _MAX_UNPACKED:
                            raise ExportError(f"{path}: larger than {_MAX_UNPACKED:,} bytes")
            except (OSError, EOFError, zlib.error) as error:
                raise ExportError(f"{path}: {_reason(error)}") from None
            yield copy

    def _config(self, name: str) -> dict[str, Any]:
        return read_table(self.content(name, MAX_BYTES), str(self.path / name))

    def _found_config(self) -> dict[str, Any]:
        """Return the configuration of a decoder, or an empty one if there is none."""
        found = {}
        for name in self.names:
            if name.endswith((".yml", ".yaml")) and (self.path / name).stat().st_size <= MAX_BYTES:
                try:
                    table = self._config(name)
                except ExportError:
                    continue  # a vocabulary, or something else
                if "models" in table and "vocabs" in table:
                    found[name] = table
        if len(found) > 1:
            preferred = [name for name in _PREFERRED if name in found]
            if not preferred:
                raise ExportError(
                    f"{self.path}: has several configurations, {', '.join(found)}: give the one "
                    "that is meant in place of the directory"
                )
            return found[preferred[0]]
        return next(iter(found.values()), {})

    def _model(self) -> str:
        if "models" in self.config:
            named = self._named("models")
            if len(named) != 1:
                raise ExportError(f"models names {len(named)} files: an ensemble can't be imported")
            return named[0]
        return self._only("a model, as model.npz or model.bin", _MODEL, _OTHER_NPZ)

    def _vocabularies(self) -> tuple[str, str]:
        if "vocabs" in self.config:
            named = self._named("vocabs")
            if len(named) != 2:
                raise ExportError(f"vocabs names {len(named)} files: there must be two")
            return named[0], named[1]
        found = [name for name in self.names if _VOCABULARY.fullmatch(name)]
        sides = [[n for n in found if side.fullmatch(n)] for side in (_SOURCE, _TARGET)]
        if [len(side) for side in sides] == [1, 1]:
            return sides[0][0], sides[1][0]
        only = self._only("a SentencePiece vocabulary, as vocab.spm", _VOCABULARY)
        return only, only

    def _shortlist(self) -> str:
        """Return the file of the lexical shortlist; an empty name if there is none."""
        if "shortlist" in self.config:
            return self._named("shortlist", first=True)[0]
        found = [name for name in self.names if _SHORTLIST.fullmatch(name)]
        return self._only("a shortlist", _SHORTLIST) if found else ""

    def _named(self, key: str, *, first: bool = False) -> list[str]:
        """Return the files that a configuration names."""
        value = self.config[key]
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, str) for each in values):
            raise ExportError(f"{key} is {shown(value)}: it must name files")
        return [self._present(key, Path(each).name) for each in (values[:1] if first else values)]

    def _present(self, key: str, name: str) -> str:
        for each in (name, name + PACKED):
            if each in self.names:
                return each
        raise ExportError(f"{key} has {shown(name)}, which is no file of {self.path}")

    def _only(self, what: str, pattern: re.Pattern[str], but: re.Pattern[str] | None = None) -> str:
        found = [
            name
            for name in self.names
            if pattern.fullmatch(name) and not (but and but.fullmatch(name))
        ]
        # A file and its packed form are one.
        found = [
            name for name in found if name.removesuffix(PACKED) == name or name[:-3] not in found
        ]
        if not found:
            raise ExportError(f"{self.path}: has no file that looks like {what}")
        if len(found) > 1:
            raise ExportError(
                f"{self.path}: has several files that look like {what}: {_list(found)}"
            )
        return found[0]


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path) if path.name.endswith(PACKED) else path.open("rb"))


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "missing"
    return getattr(error, "strerror", None) or f"damaged ({error})"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
