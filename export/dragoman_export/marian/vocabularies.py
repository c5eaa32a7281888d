"""The SentencePiece vocabularies of a Marian model, whose ids are the model's own."""

from dataclasses import dataclass
from typing import Any

from sentencepiece import SentencePieceProcessor

from dragoman_export.errors import ExportError
from dragoman_export.marian.architecture import Architecture
from dragoman_export.marian.directory import PACKED, ModelDirectory
from dragoman_server.text.vocabulary import Vocabulary

_MAX_BYTES = 64 << 20
"""Most bytes of a SentencePiece model."""
_ENDINGS = (".spm", ".model")


@dataclass(frozen=True, eq=False)
class Vocabularies:
    """Both vocabularies of a model."""

    source: Vocabulary
    """Vocabulary of the source."""
    target: Vocabulary
    """Vocabulary of the target."""
    end: int
    """Id of the token that ends a sentence."""
    unknown: int
    """Id of the token for what a vocabulary can't spell."""
    files: dict[str, bytes]
    """Content of the files that a bundle has for them, by name."""
    manifest: dict[str, Any]
    """Keys of a manifest that name the files."""


def read_vocabularies(directory: ModelDirectory, architecture: Architecture) -> Vocabularies:
    """Read both vocabularies. Raises ``ExportError`` if they don't fit the model."""
    names = directory.vocabularies
    contents = [_content(directory, name) for name in names]
    sizes = (architecture.source_vocabulary, architecture.target_vocabulary)
    specials = []
    for name, content, size in zip(names, contents, sizes, strict=True):
        path = directory.path / name
        processor = SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(content)
        except RuntimeError:
            raise ExportError(f"{path}: not a SentencePiece model") from None
        if processor.vocab_size() != size:
            raise ExportError(f"{path}: has {processor.vocab_size()} pieces, and the model {size}")
        special = {"the end": processor.eos_id(), "the unknown": processor.unk_id()}
        for what, token in special.items():
            if not 0 <= token < size:
                raise ExportError(f"{path}: has no token for {what}")
        specials.append(tuple(special.values()))
    if specials[0] != specials[1]:
        raise ExportError(
            f"{directory.path}: end and unknown are {specials[0]} in the source's vocabulary and "
            f"{specials[1]} in the target's"
        )
    end, unknown = specials[0]
    one = contents[0] == contents[1]
    files = ["tokenizer.spm"] * 2 if one else ["source.spm", "target.spm"]
    return Vocabularies(
        source=Vocabulary(contents[0]),
        target=Vocabulary(contents[1]),
        end=end,
        unknown=unknown,
        files=dict(zip(files, contents, strict=True)),
        manifest={"source_tokenizer": files[0], "target_tokenizer": files[1]},
    )


def _content(directory: ModelDirectory, name: str) -> bytes:
    if not name.removesuffix(PACKED).endswith(_ENDINGS):
        raise ExportError(
            f"{directory.path / name}: only SentencePiece vocabularies can be imported, as "
            "vocab.spm"
        )
    return directory.content(name, _MAX_BYTES)
