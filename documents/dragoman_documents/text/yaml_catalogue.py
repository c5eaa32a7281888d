"""Catalogues of strings in YAML: scalars are replaced in the source, so comments survive."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import yaml

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import LanguageSlot, Render, Slot, Template, Unit
from dragoman_documents.text.prose import why_left

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_PLAIN = re.compile(r"[^\W\d_](?:[^\n:#\[\]{},\"\\]|:(?=\S))*")
"""What may stand without quotes wherever it is; more may in places."""
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_BLOCK = re.compile(r"([|>][+-]?[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n))((?:[ \t]*(?:\r\n|\n))*)([ ]+)\S")
_STRING = "tag:yaml.org,2002:str"
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


@dataclass(slots=True)
class _Level:
    is_mapping: bool
    count: int = 0
    """Nodes so far: in a mapping, names and values by turns."""


def open_yaml(data: bytes, settings: DocumentSettings) -> Document:
    """Take a catalogue in YAML apart."""
    text, encoding = decode(data)
    try:
        found = list(_scalars(text, settings.max_depth))
    except yaml.YAMLError as error:
        raise DocumentError(f"is not YAML: {' '.join(str(error).split())[:150]}") from None
    except (ValueError, RecursionError):
        raise DocumentError("is not YAML that can be read") from None
    slots: list[Slot] = []
    left: dict[str, int] = {}
    for event, path in found:
        if path is None:
            continue
        if (event.tag or _resolve(event.value, event.implicit)) != _STRING:
            reason = "values that are not strings"
        else:
            reason = why_left(event.value)
        slot = None if reason else _slot(text, event, path)
        if slot is not None:
            slots.append(slot)
        else:
            reason = reason or "strings written in an unusual way"
            left[reason] = left.get(reason, 0) + 1
    template = Template(text, slots, _languages(found), left)
    return Document("yaml", data, [template], lambda texts: encoding.encode(texts[0]), settings)


def _scalars(
    text: str, max_depth: int
) -> "Iterator[tuple[yaml.ScalarEvent, tuple[str, ...] | None]]":
    """Yield scalars with the names that lead to them, or with None for those that are names."""
    path: list[str] = []
    levels: list[_Level] = []
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            levels.pop()
            path.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        is_key = False
        if levels and levels[-1].is_mapping:
            is_key = levels[-1].count % 2 == 0
        elif levels:
            path[-1] = str(levels[-1].count)
        if levels:
            levels[-1].count += 1
        if isinstance(event, yaml.ScalarEvent):
            yield event, None if is_key else tuple(path)
            if is_key:
                path[-1] = event.value
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(levels) >= max_depth:
                raise DocumentError(f"is nested more than {max_depth} deep")
            levels.append(_Level(isinstance(event, yaml.MappingStartEvent)))
            path.append("")


def _resolve(value: str, implicit: tuple[bool, bool]) -> str:
    """Return the type that YAML gives to a scalar."""
    tag: str = yaml.SafeLoader("").resolve(yaml.ScalarNode, value, implicit)  # type: ignore[no-untyped-call]
    return tag


def _span(event: "yaml.ScalarEvent") -> tuple[int, int]:
    assert event.start_mark is not None  # only events that are made by hand have none
    assert event.end_mark is not None
    return event.start_mark.index, event.end_mark.index


def _languages(
    found: "Sequence[tuple[yaml.ScalarEvent, tuple[str, ...] | None]]",
) -> list[LanguageSlot]:
    """Return the name of a language that all strings are below, as Rails has it."""
    roots = {path[0] for _, path in found if path}
    if len(roots) != 1 or not _LANGUAGE.fullmatch(next(iter(roots))):
        return []
    event, path = found[0]
    if path is not None or event.style or event.value not in roots:
        return []
    return [LanguageSlot(*_span(event))]


def _slot(text: str, event: "yaml.ScalarEvent", path: tuple[str, ...]) -> Slot | None:
    start, end = _span(event)
    start = _PROPERTIES.match(text, start, end).end()  # type: ignore[union-attr]
    body = event.value.strip()
    unit = Unit(body, context=".".join(path))
    if event.style in ("|", ">"):
        found = _BLOCK.match(text, start, end)
        is_indented = event.value.startswith(" ") or (event.style == ">" and "\n " in event.value)
        if found is None or is_indented:
            return None
        tail = text[start:end][len(text[start:end].rstrip()) :]
        write = partial(_write_block, event.style, found[1], found[3], tail)
        return Slot(start, end, (unit,), write)
    before, _, after = event.value.partition(body)
    return Slot(start, end, (unit,), partial(_write_inline, event.style, before, after))


def _write_inline(
    style: str | None, before: str, after: str, translations: Sequence[str], _: Render
) -> str:
    text = f"{before}{translations[0]}{after}"
    if style == "'" and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    is_plain = not style and _PLAIN.fullmatch(text) and text == text.strip()
    if is_plain and not text.endswith(":") and _resolve(text, (True, False)) == _STRING:
        return text
    return json.dumps(text, ensure_ascii=False)


def _write_block(
    style: str, header: str, indent: str, tail: str, translations: Sequence[str], _: Render
) -> str:
    ending = "\r\n" if header.endswith("\r\n") else "\n"
    lines = [line.rstrip() for line in translations[0].lstrip().split("\n")]
    if style == ">":  # in which a line break is written as an empty line
        lines = [each for line in lines for each in (line, "")][:-1]
    body = ending.join(f"{indent}{line}" if line else "" for line in lines)
    return f"{header}{body}{tail}"
