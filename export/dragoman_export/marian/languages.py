"""Which languages a Marian model translates between, as far as its files say."""

import json
import re
from collections.abc import Iterator
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_export.hf.languages import checked, is_tag
from dragoman_export.marian.directory import ModelDirectory

INFO = "model_info.json"
"""What Bergamot and translateLocally say of a model."""
_MAX_BYTES = 1 << 20
_SHORT_NAME = re.compile(r"([a-z]{2,3})-([a-z]{2,3})\b.*")
_FILE = re.compile(r"(?:.*\.)?([a-z]{2})([a-z]{2})\..*")
"""Names of files as in ``model.enpt.intgemm.alphas.bin``."""


def read_info(directory: ModelDirectory) -> dict[str, Any]:
    """Return what the directory says of the model, which may be nothing."""
    if INFO not in directory.names:
        return {}
    try:
        table = json.loads(directory.content(INFO, _MAX_BYTES))
    except (ValueError, RecursionError):
        raise ExportError(f"{directory.path / INFO}: not JSON") from None
    return table if isinstance(table, dict) else {}


def languages_of(
    directory: ModelDirectory, info: dict[str, Any], source: str, target: str
) -> tuple[str, str]:
    """Return the tags of both languages: those that are given, or else those that files name.

    Either is empty if nothing says it.
    """
    given = [
        checked(tag, side) if tag else "" for tag, side in ((source, "source"), (target, "target"))
    ]
    for pair in _named(directory, info):
        if all(map(is_tag, pair)):
            return given[0] or pair[0], given[1] or pair[1]
    return given[0], given[1]


def _named(directory: ModelDirectory, info: dict[str, Any]) -> Iterator[tuple[str, str]]:
    sources = info.get("srcTags")
    if isinstance(sources, dict) and len(sources) == 1:
        yield str(next(iter(sources))), str(info.get("trgTag"))
    if match := _SHORT_NAME.fullmatch(str(info.get("shortName", ""))):
        yield match[1], match[2]
    for name in (directory.model, directory.shortlist, *directory.vocabularies):
        if match := _FILE.fullmatch(name):
            yield match[1], match[2]
