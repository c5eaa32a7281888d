"""Their tokenizers as files of a bundle: SentencePiece models, and the ids of pieces.

Each family keeps ids in its own way; a bundle has one way for all, see ``text.vocabulary_file`` of
the server.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_export.hf.architecture import M2M100, Architecture
from dragoman_export.hf.directory import ModelDirectory
from dragoman_export.hf.languages import (
    CODES,
    m2m100_languages,
    marian_languages,
    nllb_languages,
)
from dragoman_export.importing.vocabularies import Vocabularies, bundle_vocabularies

CONFIG, VOCABULARY, TARGET_VOCABULARY = "tokenizer_config.json", "vocab.json", "target_vocab.json"
SOURCE_MODEL, TARGET_MODEL, BPE_MODEL = "source.spm", "target.spm", "sentencepiece.bpe.model"
_NLLB = ("NllbTokenizer", "NllbTokenizerFast")
_FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
"""The first tokens of NLLB. The pieces of its SentencePiece model follow, but the first three."""


def read_vocabularies(directory: ModelDirectory, architecture: Architecture) -> Vocabularies:
    """Read the tokenizers of a directory. Raises ``ExportError`` if they don't fit the model."""
    config = directory.table_if_there(CONFIG)
    # Which tokenizer it is does not follow from the model: our own may be an M2M-100 with Marian's.
    if architecture.family == M2M100 and config.get("tokenizer_class") != "MarianTokenizer":
        return _m2m100(directory, architecture, config)
    return _marian(directory, architecture, config)


def _marian(
    directory: ModelDirectory, architecture: Architecture, config: dict[str, Any]
) -> Vocabularies:
    models = [directory.content(name) for name in (SOURCE_MODEL, TARGET_MODEL)]
    source = target = _ids(directory, VOCABULARY)
    if config.get("separate_vocabs"):
        target = _ids(directory, TARGET_VOCABULARY)
    languages = marian_languages(source)
    hidden = {piece for piece in source if piece.startswith(">>") and piece.endswith("<<")}
    made = _made(directory, architecture, config, models, (source, target), hidden)
    if not languages:
        return made
    return replace(made, target_languages=languages, target_language_in="source")


def _m2m100(
    directory: ModelDirectory, architecture: Architecture, config: dict[str, Any]
) -> Vocabularies:
    model = directory.content(BPE_MODEL)
    if config.get("tokenizer_class") in _NLLB or not directory.has(VOCABULARY):
        ids = _nllb_ids(directory, config, model)
        languages = nllb_languages(ids)
    else:
        ids = _ids(directory, VOCABULARY)
        named = config.get("language_codes", "m2m100")
        if not isinstance(named, str) or named not in CODES:
            raise ExportError(f"{CONFIG}: language_codes is {named!r}, which is no known list")
        languages = m2m100_languages(CODES[named], len(ids))
        ids |= {f"__{code}__": token for code, token in languages.items()}
    if not languages:
        raise ExportError(f"{directory.path}: no language has a token")
    names = {token: piece for piece, token in ids.items()}
    hidden = {names[token] for token in languages.values()} | {"<mask>"} & ids.keys()
    made = _made(directory, architecture, config, [model, model], (ids, ids), hidden)
    return replace(
        made,
        source_languages=languages,
        target_languages=languages,
        target_language_in="target",
    )


def _nllb_ids(directory: ModelDirectory, config: dict[str, Any], model: bytes) -> dict[str, int]:
    if config.get("legacy_behaviour"):
        raise ExportError(f"{CONFIG}: legacy_behaviour puts languages after the end of a source")
    if directory.has("tokenizer.json"):
        table = directory.table("tokenizer.json")
        try:
            added = {token["content"]: token["id"] for token in table["added_tokens"]}
            return _checked("tokenizer.json", {**table["model"]["vocab"], **added})
        except (KeyError, TypeError):
            raise ExportError(f"{directory.path / 'tokenizer.json'}: has no vocabulary") from None
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]
    languages = config.get("additional_special_tokens") or config.get("extra_special_tokens") or []
    if not isinstance(languages, list):
        raise ExportError(f"{CONFIG}: its special tokens are {languages!r}, and no list")
    named = [*_FAIRSEQ, *pieces, *(str(language) for language in languages), "<mask>"]
    return {name: number for number, name in enumerate(dict.fromkeys(named))}


def _made(
    directory: ModelDirectory,
    architecture: Architecture,
    config: dict[str, Any],
    models: list[bytes],
    ids: tuple[dict[str, int], dict[str, int]],
    hidden: set[str],
) -> Vocabularies:
    name = _special(config, "unk_token", "<unk>")
    unknown = ids[0].get(name)
    if unknown is None or ids[1].get(name) != unknown:
        raise ExportError(f"{directory.path}: {name!r} has no id, or not the same on both sides")
    end = _special(config, "eos_token", "</s>")
    for each in ids:
        if each.get(end) != architecture.end:
            raise ExportError(
                f"{end!r} is {each.get(end)} in the vocabulary, but eos_token_id {architecture.end}"
            )
    control = {architecture.pad, architecture.begin, architecture.end}
    return bundle_vocabularies(
        directory.path,
        models,
        ids,
        (architecture.source_vocabulary, architecture.target_vocabulary),
        unknown=unknown,
        hidden=[control | {each[piece] for piece in hidden & each.keys()} for each in ids],
    )


def _special(config: Mapping[str, Any], key: str, default: str) -> str:
    """Return a special token's text, which stands in the file as such or in a table."""
    value = config.get(key, default)
    return str(value["content"] if isinstance(value, dict) and "content" in value else value)


def _ids(directory: ModelDirectory, name: str) -> dict[str, int]:
    return _checked(name, directory.table(name))


def _checked(name: str, ids: dict[str, Any]) -> dict[str, int]:
    if not all(type(token) is int for token in ids.values()):
        raise ExportError(f"{name}: not a table of ids")
    return ids
