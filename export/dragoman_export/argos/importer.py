"""From an Argos package to what the exporter takes."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_export.argos.architecture import read_architecture
from dragoman_export.argos.model_file import ModelFile, read_model
from dragoman_export.argos.package import MAX_MODEL_BYTES, Package, open_package
from dragoman_export.argos.vocabularies import Tokens, read_config, read_vocabularies
from dragoman_export.argos.weights import build_model
from dragoman_export.errors import ExportError
from dragoman_export.hf.languages import checked, is_tag
from dragoman_export.source import Origin
from dragoman_training.files import sha256

METADATA, README, MODEL, BPE_MODEL = "metadata.json", "README.md", "model/model.bin", "bpe.model"
_TAGS = {"pb": "pt-BR", "zt": "zh-Hant"}
"""Language codes of Argos that are no language tags."""
_CC_BY = re.compile(r"\bCC[ -]BY[ -]4\.0\b", re.IGNORECASE)
_OF_MODEL = re.compile(r"\bmodel\b.*\blicen[sc]ed\b", re.IGNORECASE)
"""What a line of a README has that is about the model's licence, and not about that of its data."""
_NOTICE_LETTERS = 4000
"""Letters of a README that a bundle keeps, for the credit that is due."""


@dataclass(frozen=True, kw_only=True)
class ImportSettings:
    """What a bundle is to take over from a package."""

    source_language: str = ""
    """Tag of the language to translate from; if empty, as the package says."""
    target_language: str = ""
    """Tag of the language to translate into; if empty, as the package says."""
    licence: str = ""
    """Licence of the model, as an SPDX identifier; if empty, as the package says."""
    max_tokens: int | None = None
    """Most tokens of a sentence; if None, what the model takes, but at most 256."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 2:
            raise ValueError(f"max_tokens is {self.max_tokens}: it must be at least 2")


def read_origin(path: Path, settings: ImportSettings) -> Origin:
    """Read a package. Raises ``ExportError`` with the reason if it can't be imported."""
    with open_package(path) as package:
        metadata = package.table(METADATA)
        _check_kind(package, metadata)
        languages = {
            side: _language(metadata, f"{key}_code", wanted, side)
            for side, key, wanted in (
                ("source", "from", settings.source_language),
                ("target", "to", settings.target_language),
            )
        }
        notice = package.content(README).decode(errors="replace") if package.has(README) else ""
        licence = settings.licence or _licence(metadata, notice)
        size = package.checked_size(MODEL, MAX_MODEL_BYTES)
        with package.stream(MODEL) as stream:
            model_file = read_model(stream, size)
        architecture = read_architecture(model_file, settings.max_tokens)
        config = read_config(package, model_file)
        prefix = metadata.get("target_prefix") or ""
        if not isinstance(prefix, str):
            raise ExportError(f"{METADATA}: target_prefix is {prefix!r}, and not a token")
        tokens = read_vocabularies(package, architecture, config, prefix)
        return Origin(
            model=build_model(architecture, model_file, config.norm_epsilon),
            source=tokens.vocabularies.source,
            target=tokens.vocabularies.target,
            special=tokens.special,
            manifest={
                **tokens.vocabularies.manifest,
                **_languages(languages, tokens),
                "source_without_end": not config.adds_end,
                "ends_in_beam": True,
                "licence": licence,
                "provenance": _provenance(package, metadata, model_file, notice),
            },
            files=tokens.vocabularies.files,
            before=() if tokens.source_begin is None else (tokens.source_begin,),
            start=() if tokens.prefix is None else (tokens.prefix,),
            measured_language=languages["target"],
        )


def _check_kind(package: Package, metadata: dict[str, Any]) -> None:
    kind = metadata.get("type", "translate")
    if kind != "translate":
        raise ExportError(f"{METADATA}: type is {kind!r}: it must be 'translate'")
    if package.has(BPE_MODEL):
        raise ExportError(
            f"{package.path}: has {BPE_MODEL}: only packages with a SentencePiece model are read"
        )


def _language(metadata: dict[str, Any], key: str, wanted: str, side: str) -> str:
    if wanted:
        return checked(wanted, side)
    code = metadata.get(key)
    tag = _TAGS.get(code, code) if isinstance(code, str) else ""
    if not tag or not is_tag(tag):
        raise ExportError(
            f"{METADATA}: {key} is {code!r}, which is no language tag: give --{side}-language"
        )
    return tag


def _languages(tags: dict[str, str], tokens: Tokens) -> dict[str, Any]:
    """Return the keys of a manifest that name languages, with tokens that stand before texts."""
    told: dict[str, Any] = {f"{side}_language": tag for side, tag in tags.items()}
    if tokens.source_begin is not None:
        told["source_languages"] = {tags["source"]: tokens.source_begin}
    if tokens.prefix is not None:
        told["target_languages"] = {tags["target"]: tokens.prefix}
        told["target_language_in"] = "target"
    return told


def _licence(metadata: dict[str, Any], notice: str) -> str:
    """Return the licence that a package states. Raises ``ExportError`` if it states none."""
    stated = str(metadata.get("license") or metadata.get("licence") or "")
    lines = [line for line in notice.splitlines() if _OF_MODEL.search(line)]
    if any(_CC_BY.search(text) for text in (stated, *lines)):
        return "CC-BY-4.0"
    raise ExportError(
        f"neither {METADATA} nor {README} says which licence the model has: give --licence, which "
        "may be 'unknown'"
    )


def _provenance(
    package: Package, metadata: dict[str, Any], model: ModelFile, notice: str
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "from": "Argos Translate",
        "package": package.name,
        **{
            key: str(metadata[key])
            for key in ("package_version", "argos_version")
            if key in metadata
        },
        "ctranslate2": f"{model.specification} {model.revision}",
    }
    if package.path.is_file():
        told["sha256"] = sha256(package.path)
    if notice:
        told["notice"] = notice[:_NOTICE_LETTERS]
    return {"imported": told}
