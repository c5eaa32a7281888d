"""Catalogues of gettext (po, pot): strings without a translation get one, others stay."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_documents.document import Document
from dragoman_documents.encodings import Encoding, decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.inline import has_letters
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import LanguageSlot, Render, Slot, Template, Unit

_LINE = re.compile(r"([^\n]*?)(?:\r?\n|\Z)")
_KEYWORD = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s*(".*)\Z')
_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*\Z')
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CHARSET = re.compile(rb"charset=([A-Za-z0-9._-]{1,40})")
_LANGUAGE = re.compile(r'"Language:\s*([^\\"]*)\\n"')


@dataclass
class _Field:
    value: str
    start: int
    end: int
    """Where its strings stand, from the first quote to the last."""


@dataclass
class _Entry:
    fields: dict[str, _Field] = field(default_factory=dict)


def open_po(data: bytes, settings: DocumentSettings) -> Document:
    """Take a catalogue apart."""
    text, encoding = _decode(data)
    slots: list[Slot] = []
    languages: list[LanguageSlot] = []
    done = 0
    for entry in _entries(text):
        source = entry.fields.get("msgid")
        if source is None:
            continue
        targets = {key: f for key, f in entry.fields.items() if key.startswith("msgstr")}
        if not source.value:
            header = next(iter(targets.values()), None)
            found = _LANGUAGE.search(text, header.start, header.end) if header else None
            if found:
                languages.append(LanguageSlot(*found.span(1), lambda tag: tag.replace("-", "_")))
            continue
        context = entry.fields["msgctxt"].value if "msgctxt" in entry.fields else ""
        plural = entry.fields.get("msgid_plural")
        for key, target in targets.items():
            original = plural if plural and key not in ("msgstr", "msgstr[0]") else source
            if target.value:
                done += 1
            elif has_letters(original.value):
                slots.append(_slot(original.value, target, context))
    left = {"strings that have a translation": done} if done else {}
    template = Template(text, slots, languages, left)
    return Document("po", data, [template], lambda texts: encoding.encode(texts[0]), settings)


def _decode(data: bytes) -> tuple[str, Encoding]:
    declared = _CHARSET.search(data)
    name = declared[1].decode() if declared else "utf-8"
    if name.upper() not in ("CHARSET", "UTF-8", "UTF8") and not data.startswith(b"\xef\xbb\xbf"):
        try:
            return data.decode(name), Encoding(name)
        except (LookupError, UnicodeDecodeError):
            raise DocumentError(f"is not {name}, as its header says") from None
    return decode(data)


def _slot(original: str, target: _Field, context: str) -> Slot:
    body = original.strip("\n")
    before, _, after = original.partition(body)

    def write(translations: Sequence[str], _: Render) -> str:
        return quoted(f"{before}{translations[0].strip(chr(10))}{after}")

    return Slot(target.start, target.end, (Unit(body, context=context),), write, is_added=True)


def _entries(text: str) -> Iterator[_Entry]:
    entry, current = _Entry(), ""
    for found in _LINE.finditer(text):
        line, start = found[1], found.start()
        if not line.strip() or line.startswith("#"):
            current = ""
            continue
        keyword = _KEYWORD.match(line)
        if keyword:
            name = keyword[1]
            is_new = name == "msgctxt" or (name == "msgid" and "msgid" in entry.fields)
            if is_new and entry.fields:
                yield entry
                entry = _Entry()
            string = _STRING.match(keyword[3])
            if string is None or name in entry.fields:
                raise DocumentError(f"is not a catalogue: {line.strip()[:60]!r}")
            first = start + keyword.start(3)
            entry.fields[name] = _Field(
                unquoted(string[1]), first, first + len(keyword[3].rstrip())
            )
            current = name
            continue
        string = _STRING.match(line)
        if string is None or not current:
            raise DocumentError(f"is not a catalogue: {line.strip()[:60]!r}")
        entry.fields[current].value += unquoted(string[1])
        entry.fields[current].end = start + len(line.rstrip())
    yield entry


def unquoted(source: str) -> str:
    """Return the characters of a string as gettext writes it."""
    return _ESCAPE.sub(_character, source) if "\\" in source else source


def _character(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0].isdigit() and code.isdigit():
        return chr(int(code, 8))
    return _ESCAPES.get(code, code)


def quoted(text: str) -> str:
    """Return a string as gettext writes it: one of several lines begins with an empty one."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\r", "\\r")
    )
    lines = escaped.replace("\n", "\\n\n").removesuffix("\n").split("\n")
    if len(lines) == 1:
        return f'"{lines[0]}"'
    return "\n".join(['""', *(f'"{line}"' for line in lines)])
