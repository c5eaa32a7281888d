"""The vocabularies of a bundle, as files.

A SentencePiece model is a file of its own. Where a model has a table of ids too, that is another
file, which two SentencePiece models may share:

    {"unknown": 1, "hidden": [0, 58100], "pieces": {"</s>": 0, "<unk>": 1, "▁the": 2, …}}

Hidden tokens are never shown: the end, padding, the tokens of languages.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.errors import BundleError
from dragoman_server.text.vocabulary import MappedVocabulary, Vocabulary


def load_vocabularies(bundle: RunnableBundle) -> tuple[Vocabulary, Vocabulary]:
    """Load the source's and the target's vocabulary: one object where the files are the same."""
    manifest, sizes = bundle.manifest, bundle.manifest.dimensions
    source = manifest.source_tokenizer, manifest.source_vocabulary, sizes.source_vocabulary
    target = manifest.target_tokenizer, manifest.target_vocabulary, sizes.target_vocabulary
    found = _load(bundle.path, *source)
    return found, found if target == source else _load(bundle.path, *target)


def _load(directory: Path, model_name: str, table_name: str, size: int) -> Vocabulary:
    try:
        model = (directory / model_name).read_bytes()
        plain = Vocabulary(model)
    except (OSError, RuntimeError):
        raise BundleError(f"{directory / model_name}: not a SentencePiece model") from None
    if table_name:
        try:
            return read_mapped(model, (directory / table_name).read_bytes(), size)
        except (OSError, ValueError, RecursionError) as error:
            raise BundleError(f"{directory / table_name}: {error}") from None
    if plain.size != size:
        raise BundleError(f"{directory / model_name}: has {plain.size} pieces, the model {size}")
    return plain


def write_vocabulary(ids: Mapping[str, int], unknown: int, hidden: Collection[int]) -> bytes:
    """Return the file of a table of ids."""
    table = {"unknown": unknown, "hidden": sorted(hidden), "pieces": dict(ids)}
    return (json.dumps(table, ensure_ascii=False) + "\n").encode()


def read_mapped(model: bytes, vocabulary: bytes, size: int) -> MappedVocabulary:
    """Read a table of ids.

    Raises ``ValueError`` for what is no such table, or does not fit a model of ``size`` tokens.
    """
    table: Any = json.loads(vocabulary)
    if not isinstance(table, dict) or table.keys() != {"unknown", "hidden", "pieces"}:
        raise ValueError("not a table of ids")
    ids, hidden, unknown = table["pieces"], table["hidden"], table["unknown"]
    if not isinstance(ids, dict) or not isinstance(hidden, list):
        raise ValueError("not a table of ids")
    if not all(type(token) is int for token in (*ids.values(), *hidden, unknown)):
        raise ValueError("has an id that is no whole number")
    if len({*ids.values()}) < len(ids):
        raise ValueError("has an id twice")
    return MappedVocabulary(model, ids, unknown, hidden, size)
