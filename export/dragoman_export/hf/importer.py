"""From a Hugging Face directory to what the exporter takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_export.hf.architecture import CLASSES, Architecture, read_architecture
from dragoman_export.hf.directory import ModelDirectory
from dragoman_export.hf.languages import Languages, checked, chosen, is_tag, one_tag
from dragoman_export.hf.vocabularies import CONFIG, read_vocabularies
from dragoman_export.hf.weights import build_model
from dragoman_export.importing.vocabularies import Vocabularies
from dragoman_export.source import Origin
from dragoman_server.bundle.manifest import SpecialIds


@dataclass(frozen=True, kw_only=True)
class ImportSettings:
    """What a bundle is to take over from a model of Hugging Face."""

    source_languages: Sequence[str] = ()
    """Tags of the languages to translate from; if empty, all that the model has."""
    target_languages: Sequence[str] = ()
    """Tags of the languages to translate into; if empty, all that the model has."""
    max_length: int | None = None
    """Most tokens of a sentence; if None, what the model takes, but at most 256."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 2:
            raise ValueError(f"max_length is {self.max_length}: it must be at least 2")


def read_origin(path: Path, settings: ImportSettings) -> Origin:
    """Read a model's directory. Raises ``ExportError`` with the reason if it can't be imported."""
    directory = ModelDirectory(path)
    config = directory.table("config.json")
    architecture = read_architecture(
        config, directory.table_if_there("generation_config.json"), settings.max_length
    )
    vocabularies = read_vocabularies(directory, architecture)
    languages = _languages(directory.table_if_there(CONFIG), vocabularies, settings)
    targets = _first(languages["target_languages"])
    in_source = vocabularies.target_language_in == "source"
    return Origin(
        model=build_model(architecture, directory.weights()),
        source=vocabularies.source,
        target=vocabularies.target,
        special=SpecialIds(
            pad=architecture.pad,
            unknown=vocabularies.unknown,
            begin=architecture.begin,
            end=architecture.end,
        ),
        manifest={
            **vocabularies.manifest,
            **languages,
            "ends_in_beam": True,
            "provenance": _provenance(config, architecture),
        },
        files=vocabularies.files,
        before=(*_first(languages["source_languages"]), *(targets if in_source else ())),
        start=() if in_source else targets,
        measured_language=next(iter(languages["target_languages"]), languages["target_language"]),
    )


def _languages(
    config: dict[str, Any], vocabularies: Vocabularies, settings: ImportSettings
) -> dict[str, Any]:
    """Return the keys of a manifest that name languages."""
    told: dict[str, Any] = {}
    for side, offered, wanted, key in (
        ("source", vocabularies.source_languages, settings.source_languages, "source_lang"),
        ("target", vocabularies.target_languages, settings.target_languages, "target_lang"),
    ):
        several = chosen(offered, wanted, side) if offered else _without_tokens(wanted, side)
        told[f"{side}_languages"] = several
        told[f"{side}_language"] = one_tag(several) if several else _one(config, wanted, side, key)
    told["target_language_in"] = vocabularies.target_language_in
    missing = [
        f"--{side}-language" for side in ("source", "target") if not told[f"{side}_language"]
    ]
    if missing:
        raise ExportError(
            f"{CONFIG} is missing or names no language, and the model does not either: give "
            f"{' and '.join(missing)}, as in --source-language en --target-language pt"
        )
    return told


def _without_tokens(wanted: Sequence[str], side: str) -> dict[str, int | None]:
    """Return source languages that the model tells apart by itself, if there are several."""
    if len(wanted) <= 1:
        return {}
    if side == "target":
        raise ExportError(
            f"--target-language {wanted[1]}: the model has no tokens of languages, and so only one"
        )
    return {checked(tag, side): None for tag in wanted}


def _one(config: dict[str, Any], wanted: Sequence[str], side: str, key: str) -> str:
    if wanted:
        return checked(wanted[0], side)
    tag = str(config.get(key) or "").replace("_", "-")
    if tag and not is_tag(tag):
        raise ExportError(
            f"{CONFIG}: {key} is {tag!r}, which is no language tag: give --{side}-language"
        )
    return tag


def _first(languages: Languages) -> tuple[int, ...]:
    """Return the token of the first language, if it has one."""
    return tuple(token for token in list(languages.values())[:1] if token is not None)


def _provenance(config: dict[str, Any], architecture: Architecture) -> dict[str, Any]:
    return {
        "imported": {
            "from": "Hugging Face",
            "class": CLASSES[architecture.family],
            "transformers": str(config.get("transformers_version", "unknown")),
        }
    }
