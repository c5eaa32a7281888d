"""Glossaries: from files, and those that a server keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import ConfigurationError
from dragoman_client._field_docs import documented
from dragoman_client._types import require_text, wrong_type


@documented
@dataclass(frozen=True)
class Glossary:
    """A glossary that a server keeps."""

    name: str
    """Name of the glossary, for ``Options.glossary_name``."""
    source_language: str
    """Tag of the language that the terms are in; empty for any."""
    target_language: str
    """Tag of the language of what stands for them; empty for any."""
    entry_count: int
    """Number of terms."""
    created: int
    """When the glossary was created, in seconds since 1970."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Terms with what stands for each; empty where glossaries are listed."""


def glossary(message: pb.Glossary) -> Glossary:
    return Glossary(
        message.name,
        message.source_language,
        message.target_language,
        message.entry_count,
        message.created,
        {entry.source: entry.target for entry in message.entries},
    )


def create_request(
    name: str,
    entries: Mapping[str, str],
    source_language: str | None,
    target_language: str | None,
) -> pb.CreateGlossaryRequest:
    """Return the request for a glossary to be kept."""
    require_text("name", name)
    made = pb.Glossary(
        name=name, source_language=source_language or "", target_language=target_language or ""
    )
    for term, target in checked_entries("entries", entries):
        made.entries.add(source=term, target=target)
    return pb.CreateGlossaryRequest(glossary=made)


def checked_entries(name: str, entries: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the terms of a glossary, where all are text."""
    if not isinstance(entries, Mapping):
        raise wrong_type(name, entries, "a dict", 'give {"term": "translation"}')
    for term, target in entries.items():
        require_text(f"a term of {name}", term)
        require_text(f"{name}[{term!r}]", target)
    return list(entries.items())


def read_glossary(path: "str | PathLike[str]") -> dict[str, str]:
    """Return the terms of a TSV file with their translations, as ``Options.glossary`` takes them.

    A line without a tab, or with nothing after it, is a term that stays as it is. Empty lines and
    those that begin with # are passed over. Raises ``ConfigurationError`` that names the line.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: not UTF-8") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        source, *targets = (field.strip() for field in line.split("\t"))
        if len(targets) > 1 or not source:
            raise ConfigurationError(
                f"{path}:{number}: it must be a term, a tab, and what stands for it"
            )
        if source in found:
            raise ConfigurationError(f"{path}:{number}: {source!r} is there already")
        found[source] = targets[0] if targets else ""
    return found
