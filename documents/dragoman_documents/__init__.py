"""Documents taken apart into segments, and put together again with translations in their places."""

from dragoman_documents.document import Document, Segment
from dragoman_documents.errors import DocumentError
from dragoman_documents.registry import EXTENSIONS, FORMATS, format_of, open_document
from dragoman_documents.settings import DocumentSettings

__all__ = [
    "EXTENSIONS",
    "FORMATS",
    "Document",
    "DocumentError",
    "DocumentSettings",
    "Segment",
    "format_of",
    "open_document",
]
