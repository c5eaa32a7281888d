"""Glossaries on disk: a file for each, which appears whole or not at all.

    DIRECTORY/OWNER/NAME.json

OWNER is a hash of the client's name, so that no client can name a file of another one. All are read
when the server starts, and kept in memory from then on.
"""

import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_server.errors import ServerError
from dragoman_server.text.glossaries.terms import Entry, Glossary

log = logging.getLogger("dragoman.server")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a glossary may be called; it is the name of a file too."""


@dataclass(frozen=True)
class StoredGlossary:
    """A glossary of a client."""

    name: str
    source_language: str
    """Language that the terms are in; empty for any."""
    target_language: str
    """Language of what stands for them; empty for any."""
    entries: Sequence[tuple[str, str]]
    """Each term, with what stands for it."""
    created: int
    """When the glossary was created, in seconds since 1970."""
    title: str = ""
    """What people call the glossary, where its name is only an id; empty for none."""
    _made: dict[tuple[bool, bool], Glossary] = field(default_factory=dict, compare=False)

    def terms(self, *, case_sensitive: bool = False, plurals: bool = False) -> Glossary:
        """Return what finds the terms in texts; made once for each way that is asked for."""
        key = (case_sensitive, plurals)
        if key not in self._made:
            self._made[key] = Glossary(
                [Entry(source, target) for source, target in self.entries],
                case_sensitive=case_sensitive,
                plurals=plurals,
            )
        return self._made[key]


class GlossaryStore:
    """The glossaries of all clients."""

    def __init__(self, directory: Path) -> None:
        """Read what is there. Raises ``ServerError`` where the directory is no use."""
        self._directory = directory
        self._by_owner: dict[str, dict[str, StoredGlossary]] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for path in sorted(directory.glob("*/*.json")):
                self._read(path)
        except OSError as error:
            raise ServerError(f"{directory}: no use for glossaries ({error.strerror})") from None

    def all_of(self, owner: str) -> list[StoredGlossary]:
        """Return the glossaries of a client, by name."""
        return [own for _, own in sorted(self._by_owner.get(_folder(owner), {}).items())]

    def find(self, owner: str, name: str) -> StoredGlossary | None:
        """Return a glossary of a client."""
        return self._by_owner.get(_folder(owner), {}).get(name)

    def add(self, owner: str, glossary: StoredGlossary) -> None:
        """Keep a glossary. Raises ``OSError`` where it can't be written; nothing is left then."""
        folder = self._directory / _folder(owner)
        folder.mkdir(exist_ok=True)
        content = {
            "name": glossary.name,
            "source_language": glossary.source_language,
            "target_language": glossary.target_language,
            "created": glossary.created,
            "entries": list(glossary.entries),
            "title": glossary.title,
        }
        _write(folder / f"{glossary.name}.json", json.dumps(content, ensure_ascii=False))
        self._by_owner.setdefault(_folder(owner), {})[glossary.name] = glossary

    def remove(self, owner: str, name: str) -> None:
        """Forget a glossary, where there is one."""
        with suppress(FileNotFoundError):
            (self._directory / _folder(owner) / f"{name}.json").unlink()
        self._by_owner.get(_folder(owner), {}).pop(name, None)

    def _read(self, path: Path) -> None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            found = StoredGlossary(
                str(content["name"]),
                str(content["source_language"]),
                str(content["target_language"]),
                [(str(source), str(target)) for source, target in content["entries"]],
                int(content["created"]),
                str(content.get("title", "")),  # files of earlier versions have none
            )
            found.terms()  # raises where it can't be used
        except (ValueError, KeyError, TypeError):
            # It stays where it is, for somebody to look at.
            log.warning("%s: a glossary that can't be read is left out", path.name)
            return
        self._by_owner.setdefault(path.parent.name, {})[found.name] = found


def now() -> int:
    """Return the time of a new glossary."""
    return int(time.time())


def _folder(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:32]


def _write(path: Path, content: str) -> None:
    """Write a file aside and give it its name when it is on the disk."""
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
