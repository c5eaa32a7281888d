"""From the directory of a Marian model to what the exporter takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_export.marian.architecture import Architecture, read_architecture
from dragoman_export.marian.directory import ModelDirectory
from dragoman_export.marian.languages import languages_of, read_info
from dragoman_export.marian.lexical_shortlist import MAX_BYTES, read_lexical_shortlist
from dragoman_export.marian.model_file import CONFIG, ModelFile
from dragoman_export.marian.proof import check_against_reference
from dragoman_export.marian.quantization import quantization_of
from dragoman_export.marian.reading import read_model
from dragoman_export.marian.reference import MarianReference
from dragoman_export.marian.shortlists import bundle_shortlist
from dragoman_export.marian.vocabularies import Vocabularies, read_vocabularies
from dragoman_export.marian.weights import build_model
from dragoman_export.marian.yaml_text import read_table
from dragoman_export.source import Origin
from dragoman_server.bundle.manifest import SpecialIds
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.files import sha256

_TOLD = ("modelName", "shortName", "type", "version", "repository")
"""Keys that are taken over of what a directory says of its model."""


@dataclass(frozen=True, kw_only=True)
class ImportSettings:
    """What a bundle is to take over from a model of Marian."""

    source_language: str = ""
    """Tag of the language to translate from; if empty, what the files say."""
    target_language: str = ""
    """Tag of the language to translate into; if empty, what the files say."""
    max_length: int | None = None
    """Most tokens of a sentence; if None, 256."""
    with_shortlist: bool = True
    """Whether the bundle takes the shortlist over, if there is one."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 2:
            raise ValueError(f"max_length is {self.max_length}: it must be at least 2")


def read_origin(path: Path, settings: ImportSettings) -> Origin:
    """Read a model's directory. Raises ``ExportError`` with the reason if it can't be imported."""
    directory = ModelDirectory(path)
    with directory.unpacked(directory.model) as file:
        model, digest = read_model(file), sha256(file)
    config = read_table(model.config, CONFIG)
    architecture = read_architecture(config, settings.max_length)
    vocabularies = read_vocabularies(directory, architecture)
    info = read_info(directory)
    source, target = languages_of(
        directory, info, settings.source_language, settings.target_language
    )
    end, unknown = vocabularies.end, vocabularies.unknown
    floats = {name: weight.values for name, weight in model.weights.items()}
    transformer = build_model(architecture, floats, unknown=unknown)
    reference = MarianReference(floats, config, end=end, unknown=unknown)
    check_against_reference(transformer, reference, end=end)
    return Origin(
        model=transformer,
        source=vocabularies.source,
        target=vocabularies.target,
        special=SpecialIds(
            # Nothing looks at it, so any token can fill up a batch; and decoding begins with zeros.
            pad=next(token for token in range(3) if token not in (end, unknown)),
            unknown=unknown,
            begin=end,
            end=end,
        ),
        manifest={
            **vocabularies.manifest,
            "source_language": source,
            "target_language": target,
            "ends_in_beam": True,
            "provenance": _provenance(directory, model, architecture, info, digest),
        },
        files=vocabularies.files,
        measured_language=target,
        quantization=quantization_of(architecture, model.weights),
        shortlist=_shortlist(directory, vocabularies) if settings.with_shortlist else None,
    )


def _shortlist(directory: ModelDirectory, vocabularies: Vocabularies) -> Shortlist | None:
    if not directory.shortlist:
        return None
    lexical = read_lexical_shortlist(
        directory.content(directory.shortlist, MAX_BYTES),
        str(directory.path / directory.shortlist),
        vocabularies.source,
        vocabularies.target,
    )
    return bundle_shortlist(
        lexical,
        end=vocabularies.end,
        unknown=vocabularies.unknown,
        is_shared=len(vocabularies.files) == 1,
        target_vocabulary=vocabularies.target.size,
    )


def _provenance(
    directory: ModelDirectory,
    model: ModelFile,
    architecture: Architecture,
    info: Mapping[str, Any],
    digest: str,
) -> dict[str, Any]:
    is_quantized = any(weight.multiplier for weight in model.weights.values())
    return {
        "imported": {
            "from": "Marian",
            "version": architecture.version,
            "file": directory.model,
            "sha256": digest,
            "weights": "intgemm8" if is_quantized else "float32",
            **{f"model_{key}": str(info[key])[:200] for key in _TOLD if key in info},
        }
    }
