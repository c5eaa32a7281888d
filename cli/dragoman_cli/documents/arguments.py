"""Which arguments are documents, and what their translations are called.

Knows file names only: what is in the files is ``dragoman_documents``'s.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman_client._errors import ConfigurationError
from dragoman_documents.registry import format_of

_MAX_NAME = 255
"""Bytes of a name, beyond which no file system has it."""
_MAX_PATH = 1000
"""Letters of a path, beyond which an argument is a text."""


@dataclass(frozen=True)
class Task:
    """A document, and the file that its translation is written to."""

    source: Path
    output: Path


def documents_among(texts: Sequence[str]) -> list[Path]:
    """Return the arguments that are documents; raises where only some are.

    A file counts by its ending, and a folder where it is written with a slash: many a word is also
    the name of a folder.
    """
    found = [Path(text) for text in texts if _is_document(text)]
    if found and len(found) < len(texts):
        other = next(text for text in texts if not _is_document(text))
        raise ConfigurationError(
            f"{found[0]} is a document, and {_short(other)!r} is none: give texts or documents"
        )
    return found


def hint(text: str) -> str:
    """Return what to say of a text that may have been meant as a file, or nothing."""
    if not _may_be_name(text) or " " in text or not text.isprintable():
        return ""  # a sentence may end with the name of a file
    if Path(text).is_dir():
        return f"{text} is translated as text; write {text}/ for the documents in that folder"
    if format_of(text) and not Path(text).exists():
        return f"{text} is translated as text: there is no such file"
    return ""


def tasks(
    sources: Sequence[Path], output: Path | None, language: str, *, resume: bool, overwrite: bool
) -> list[Task]:
    """Return what is to be done; raises where a name would be taken twice, or is taken already."""
    found: list[Task] = []
    files = [(file, root) for source in sources for file, root in _files(source, language)]
    into_folder = output is not None and (
        output.is_dir() or len(files) > 1 or not sources[0].is_file()
    )
    for file, root in files:
        if output is None:
            target = file.with_name(translated_name(file, language))
        elif into_folder:
            target = output / file.relative_to(root).with_name(translated_name(file, language))
        else:
            target = output
        found.append(Task(file, target))
    _check(found, resume=resume, overwrite=overwrite)
    return found


def translated_name(file: Path, language: str) -> str:
    """Return ``report.pt.docx`` for ``report.docx``."""
    return f"{file.stem}.{language}{file.suffix}"


def _files(source: Path, language: str) -> Iterator[tuple[Path, Path]]:
    """Yield the documents of an argument, and the folder that their names are relative to."""
    if source.is_file():
        yield source, source.parent
        return
    found = False
    for file in sorted(source.rglob("*")):
        is_hidden = any(part.startswith(".") for part in file.relative_to(source).parts)
        is_ours = Path(file.stem).suffix == f".{language}"  # of a run before
        if file.is_file() and format_of(file) and not is_hidden and not is_ours:
            found = True
            yield file, source
    if not found:
        raise ConfigurationError(f"{source}: there is no document in this folder")


def _check(found: Sequence[Task], *, resume: bool, overwrite: bool) -> None:
    taken: dict[Path, Path] = {}
    sources = {task.source.resolve() for task in found}
    for task in found:
        target = task.output.resolve()
        if target in sources:
            raise ConfigurationError(
                f"{task.output}: is a file that is translated; give --output another name"
            )
        if target in taken:
            raise ConfigurationError(
                f"{task.output}: {taken[target]} and {task.source} would both be written there"
            )
        taken[target] = task.source
        if task.output.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory", str(task.output))
        if task.output.exists() and not (resume or overwrite):
            raise ConfigurationError(f"{task.output}: is there already; --overwrite replaces it")


def _is_document(text: str) -> bool:
    if not _may_be_name(text):
        return False
    path = Path(text)
    if path.is_dir():
        return "/" in text
    return path.is_file() and format_of(path) is not None


def _may_be_name(text: str) -> bool:
    """Whether a file system could have such a name: to ask for others raises errors."""
    parts = text.split("/")
    is_short = len(text) <= _MAX_PATH and all(len(os.fsencode(part)) <= _MAX_NAME for part in parts)
    return bool(text) and "\0" not in text and is_short


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
