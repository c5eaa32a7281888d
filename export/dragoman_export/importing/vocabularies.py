"""Vocabularies of a model from elsewhere as files of a bundle.

Each project keeps ids in its own way; a bundle has one way for all, see ``text.vocabulary_file`` of
the server.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_server.text.vocabulary import MappedVocabulary
from dragoman_server.text.vocabulary_file import read_mapped, write_vocabulary

_TOKENIZERS = ("source.spm", "target.spm")
_TABLES = ("source_vocabulary.json", "target_vocabulary.json")


@dataclass(frozen=True, eq=False)
class Vocabularies:
    """Both vocabularies of a model, and the tokens that name languages."""

    source: MappedVocabulary
    """Vocabulary of the source."""
    target: MappedVocabulary
    """Vocabulary of the target."""
    unknown: int
    """Id of the token for what a vocabulary can't spell."""
    files: dict[str, bytes]
    """Content of the files that a bundle has for them, by name."""
    manifest: dict[str, Any]
    """Keys of a manifest that name the files."""
    source_languages: dict[str, int] = field(default_factory=dict)
    """Languages that a source begins with a token of; empty if there are no such tokens."""
    target_languages: dict[str, int] = field(default_factory=dict)
    """Languages that a token tells the model to translate into; empty if there are none."""
    target_language_in: str = ""
    """Place of the target language's token, as in a manifest."""


def bundle_vocabularies(
    path: Path,
    models: Sequence[bytes],
    ids: Sequence[Mapping[str, int]],
    sizes: Sequence[int],
    *,
    unknown: int,
    hidden: Sequence[Collection[int]],
) -> Vocabularies:
    """Return both sides' SentencePiece models and ids of pieces as files of a bundle.

    Each sequence has the source's first and then the target's. ``sizes`` are the tokens that the
    model has, and ``hidden`` are tokens that are never shown. Raises ``ExportError``, which names
    ``path``, if they don't fit each other.
    """
    tables = [
        write_vocabulary(each, unknown, never) for each, never in zip(ids, hidden, strict=True)
    ]
    tokenizers = _named("tokenizer.spm", _TOKENIZERS, models)
    vocabularies = _named("vocabulary.json", _TABLES, tables)
    pieces = []
    for side, model, table, size in zip(("source", "target"), models, tables, sizes, strict=True):
        try:
            pieces.append(read_mapped(model, table, size))
        except ValueError as error:
            raise ExportError(f"{path}: the {side} vocabulary {error}") from None
        except RuntimeError:
            raise ExportError(f"{path}: the {side} tokenizer is no SentencePiece model") from None
    return Vocabularies(
        source=pieces[0],
        target=pieces[1],
        unknown=unknown,
        files={
            **dict(zip(tokenizers, models, strict=True)),
            **dict(zip(vocabularies, tables, strict=True)),
        },
        manifest={
            "source_tokenizer": tokenizers[0],
            "target_tokenizer": tokenizers[1],
            "source_vocabulary": vocabularies[0],
            "target_vocabulary": vocabularies[1],
        },
    )


def _named(one: str, two: tuple[str, str], contents: Sequence[bytes]) -> tuple[str, str]:
    """Return the names of two files, or one name twice if their content is the same."""
    return (one, one) if contents[0] == contents[1] else two
