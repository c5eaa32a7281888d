"""Tables as text (csv, tsv): cells of the columns asked for, or all that hold prose."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Render, Slot, Template, Unit
from dragoman_documents.text.prose import why_left

_SAMPLE = 1 << 16


def open_table(
    format: str,  # noqa: A002 - what everyone calls it
    data: bytes,
    settings: DocumentSettings,
) -> Document:
    """Take a table apart. Its first line names the columns, and stays as it is."""
    text, encoding = decode(data)
    delimiter = "\t" if format == "tsv" else _delimiter(text)
    rows = _rows(text, delimiter)
    header = next(rows, [])
    names = [_value(text[start:end]) for start, end in header]
    chosen = _chosen(settings.columns, names)
    slots: list[Slot] = []
    left: Counter[str] = Counter()
    for number, row in enumerate(rows, start=2):
        for column, (start, end) in enumerate(row):
            if chosen and column not in chosen:
                continue
            value = _value(text[start:end])
            reason = why_left(value)
            if reason:
                left[reason] += bool(value.strip())
                continue
            name = names[column] if column < len(names) else str(column + 1)
            unit = Unit(value.strip(), context=f"line {number}, {name}")
            write = partial(_write, delimiter, text[start : start + 1] == '"', value)
            slots.append(Slot(start, end, (unit,), write))
    template = Template(text, slots, (), {key: count for key, count in left.items() if count})
    return Document(format, data, [template], lambda texts: encoding.encode(texts[0]), settings)


def _chosen(columns: Sequence[str], names: Sequence[str]) -> set[int]:
    found = set()
    for column in columns:
        if column in names:
            found.add(names.index(column))
        elif column.isdecimal() and 0 < int(column) <= len(names):
            found.add(int(column) - 1)
        else:
            raise DocumentError(f"has no column {column!r}: it has {', '.join(names)[:200]}")
    return found


def _delimiter(text: str) -> str:
    """Return what stands between cells: what the first line has most of."""
    first = re.sub(r'"[^"]*"', "", text[:_SAMPLE].partition("\n")[0])
    return max(",;\t|", key=first.count)


def _rows(text: str, delimiter: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the cells of each line, as spans with their quotes."""
    cell = re.compile(rf'(?:"(?:[^"]|"")*+"[^{delimiter}\r\n]*+|[^{delimiter}\r\n]*+)')
    position, row = 0, []
    while position < len(text):
        found = cell.match(text, position)
        end = found.end() if found else position
        row.append((position, end))
        if text[end : end + 1] == delimiter:
            position = end + 1
            if position == len(text):
                row.append((position, position))
            continue
        yield row
        row = []
        position = end + (2 if text.startswith("\r\n", end) else 1)
    if row:
        yield row


def _value(source: str) -> str:
    if len(source) > 1 and source[0] == source[-1] == '"':
        return source[1:-1].replace('""', '"')
    return source


def _write(
    delimiter: str, is_quoted: bool, value: str, translations: Sequence[str], _: Render
) -> str:
    body = value.strip()
    before, _body, after = value.partition(body)
    text = f"{before}{translations[0]}{after}"
    if is_quoted or delimiter in text or '"' in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text
