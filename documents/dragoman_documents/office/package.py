"""A zip of texts as a document: some members are taken apart, the others are copied."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dragoman_documents.archive import Archive
from dragoman_documents.document import Document
from dragoman_documents.encodings import Encoding, decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Slot, Template, Unit

Reader = Callable[[str], Template]
"""Takes the text of a member apart."""


def open_package(
    format: str,  # noqa: A002 - what everyone calls it
    data: bytes,
    archive: Archive,
    readers: Mapping[str, Reader],
    settings: DocumentSettings,
) -> Document:
    """Take apart the members that have a reader."""
    templates: list[Template] = []
    encodings: list[Encoding] = []
    for name, reader in readers.items():
        try:
            text, encoding = decode(archive.read(name), is_html=True)
            templates.append(_named(reader(text), name))
        except DocumentError as error:
            raise DocumentError(f"{name}: {error}") from None
        encodings.append(encoding)

    def assemble(texts: Sequence[str]) -> bytes:
        changed = {
            name: encoding.encode(text, "xmlcharrefreplace")
            for name, text, encoding, template in zip(
                readers, texts, encodings, templates, strict=True
            )
            if text != template.text
        }
        return archive.write(changed)

    return Document(format, data, templates, assemble, settings)


def _named(template: Template, name: str) -> Template:
    """Return a template whose units say which member they are from."""

    def named(unit: Unit) -> Unit:
        return replace(unit, context=f"{name} {unit.context}".rstrip())

    slots: list[Slot] = [
        replace(slot, units=tuple(map(named, slot.units))) for slot in template.slots
    ]
    return replace(template, slots=slots)
