"""Catalogues of strings in JSON: values are translated where they are prose, names never."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Render, Slot, Template, Unit
from dragoman_documents.text.prose import why_left

_OF_EXTENSIONS = {"message", "description", "placeholders"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s"{}\[\]:,]+')


@dataclass(slots=True)
class _Level:
    is_object: bool
    key: str = ""
    index: int = 0
    keys: set[str] = field(default_factory=set)
    strings: list["_String"] = field(default_factory=list)
    """Values in it, and in what is in it."""


@dataclass(slots=True)
class _String:
    start: int
    end: int
    path: tuple[str, ...]
    is_note: bool = False
    """Whether it is about another string, and not for users."""


def open_json(data: bytes, settings: DocumentSettings) -> Document:
    """Take a catalogue in JSON apart."""
    text, encoding = decode(data)
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"is not JSON: {error}") from None
    is_ascii = text.isascii() and "\\u" in text
    slots: list[Slot] = []
    left: dict[str, int] = {}
    for string in _strings(text):
        start, end = string.start, string.end
        value = json.loads(text[start:end])
        is_whole = all(not "\ud800" <= letter <= "\udfff" for letter in value)
        reason = why_left(value) if is_whole else "strings with half a letter"
        reason = "notes on strings" if string.is_note else reason
        if reason:
            left[reason] = left.get(reason, 0) + 1
            continue
        body = value.strip()
        before, _, after = value.partition(body)
        unit = Unit(body, context=".".join(string.path))
        slots.append(Slot(start, end, (unit,), partial(_write, is_ascii, before, after)))
    template = Template(text, slots, (), left)
    return Document("json", data, [template], lambda texts: encoding.encode(texts[0]), settings)


def _strings(text: str) -> list[_String]:
    """Return the strings that are values, and not names, of JSON that is known to be right."""
    root = _Level(is_object=False)
    levels = [root]
    found = list(_TOKEN.finditer(text))
    for number, match in enumerate(found):
        sign, level = match[0][0], levels[-1]
        if sign in "{[":
            levels.append(_Level(is_object=sign == "{"))
        elif sign in "}]":
            levels.pop()
            _mark_notes(level, len(levels) - 1)
            levels[-1].strings += level.strings
        elif sign == ",":
            level.index += 1
        elif sign == '"':
            if number + 1 < len(found) and found[number + 1][0] == ":":
                level.key = json.loads(match[0])
                level.keys.add(level.key)
                continue
            path = tuple(each.key if each.is_object else str(each.index) for each in levels[1:])
            is_note = any(key.startswith("@") for key in path)  # as ARB has them
            level.strings.append(_String(*match.span(), path, is_note))
    return root.strings


def _mark_notes(level: _Level, depth: int) -> None:
    """Mark what stands beside the message of a browser extension."""
    if "message" in level.keys and level.keys <= _OF_EXTENSIONS:
        for string in level.strings:
            string.is_note = string.path[depth] != "message"


def _write(is_ascii: bool, before: str, after: str, translations: Sequence[str], _: Render) -> str:
    return json.dumps(f"{before}{translations[0]}{after}", ensure_ascii=is_ascii)
