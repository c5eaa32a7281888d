"""What is exported: a model, its vocabularies, and what its bundle is to say of them.

It comes from a checkpoint of ours or from elsewhere (``dragoman_export.hf``), and the exporter does
not care which.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from dragoman_export.errors import ExportError
from dragoman_export.graphs.precision import Quantization
from dragoman_server.bundle.manifest import SHORTLIST, SpecialIds
from dragoman_server.bundle.shortlist import Shortlist, read_shortlist
from dragoman_training.data.tokenizer import Ends
from dragoman_training.models.transformer import Transformer
from dragoman_training.train.checkpoint import Checkpoint

_PATHS = (
    *("train_source", "train_target", "valid_source", "valid_target"),
    *("source", "target", "labels"),
)


class Vocabulary(Protocol):
    """One side's text as ids and back."""

    def encode_all(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return the tokens of each text."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """A model to export, with its vocabularies."""

    model: Transformer
    """The model itself."""
    source: Vocabulary
    """Vocabulary of the source."""
    target: Vocabulary
    """Vocabulary of the target."""
    special: SpecialIds
    """Ids of the tokens that are no text."""
    manifest: dict[str, Any]
    """Keys of the manifest that say what the languages and tokenizers are, and where the model
    comes from."""
    files: dict[str, bytes]
    """Content of the tokenizers' files, by name."""
    before: tuple[int, ...] = ()
    """Tokens of languages that a source begins with when quality is measured."""
    start: tuple[int, ...] = ()
    """Tokens that a translation begins with when quality is measured; they are no part of it."""
    measured_language: str
    """Tag of the language that text is translated into when quality is measured."""
    quantization: Quantization | None = None
    """How the model was quantized already, for an int8 bundle; None if it was not."""
    shortlist: Shortlist | None = None
    """Shortlist that came with the model, for an int8 bundle."""

    @property
    def ends(self) -> Ends:
        """The tokens that translations begin and end with."""
        return Ends(
            self.special.begin,
            self.special.end,
            ends_source=not self.manifest.get("source_without_end", False),
            start=self.start,
            before=self.before,
            in_beam=self.manifest.get("ends_in_beam", False),
        )

    @property
    def max_source_tokens(self) -> int:
        """Most tokens of a source, without its end token."""
        return self.model.settings.max_length - 1

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the source tokens of each text; none for a blank one."""
        return [[*self.before, *ids] if ids else [] for ids in self.source.encode_all(list(texts))]


def origin_of(checkpoint: Checkpoint) -> Origin:
    """Return a checkpoint as what is exported. Raises ``ExportError`` if it is no Transformer."""
    model = checkpoint.build_model()
    if not isinstance(model, Transformer):
        raise ExportError(
            f"the checkpoint's model is of kind {model.settings.kind!r}: only Transformers can be "
            "exported"
        )
    config, tokenizers = checkpoint.config, checkpoint.tokenizers
    ends, names = tokenizers.ends, {*tokenizers.names.values()}
    return Origin(
        model=model,
        source=tokenizers.source,
        target=tokenizers.target,
        special=SpecialIds(
            pad=tokenizers.pad, unknown=tokenizers.target.unknown, begin=ends.begin, end=ends.end
        ),
        manifest={
            "source_language": config.get("source_language") or "",
            "target_language": config.get("target_language") or "",
            **tokenizers.names,
            **tokenizers.manifest,
            "placeholders": min(tokenizers.source.placeholders, tokenizers.target.placeholders),
            "provenance": provenance(config),
        },
        files={name: file for name, file in tokenizers.files().items() if name in names},
        before=ends.before,
        start=ends.start,
        measured_language=config.get("target_language") or "",
        shortlist=_shortlist(tokenizers.shortlist),
    )


def _shortlist(content: bytes) -> Shortlist | None:
    """Return the shortlist that a model was trained on from, out of its file."""
    if not content:
        return None
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / SHORTLIST
        path.write_bytes(content)
        return read_shortlist(path)


def provenance(config: dict[str, Any]) -> dict[str, Any]:
    """Return what made the model, with the names of its files but not their directories."""
    told: dict[str, Any] = {
        key: config[key] for key in ("data", "progress", "recipe") if key in config
    }
    if "recipe" in told:
        data = _without_directories(told["recipe"]["data"])
        training = dict(told["recipe"].get("training") or {})
        if training.get("initial"):
            training["initial"] = Path(training["initial"]).name
        told["recipe"] = {**told["recipe"], "data": data, "training": training}
    return told


def _without_directories(data: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of data, or of a corpus, with the names of files alone."""
    told: dict[str, Any] = {}
    for key, value in data.items():
        if key in _PATHS:
            told[key] = [Path(path).name for path in value]
        elif key in ("corpora", "validation"):
            told[key] = [_without_directories(table) for table in value]
        elif key != "directory":
            told[key] = value
    return told
