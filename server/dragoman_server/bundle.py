"""Bundles: directories that hold a model to serve, and say all about it.

A bundle is checked whole before anything in it is used: the manifest's version, that every file is
there with its size and hash and nothing else is, and that the graphs refer to no file but the
weights. The reader needs neither PyTorch nor onnx.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dragoman_server.errors import BundleError
from dragoman_server.graph_names import GRAPHS
from dragoman_server.onnx_files import external_files

FORMAT = 1
MANIFEST, GOLDEN, WEIGHTS = "manifest.json", "golden.json", "weights.bin"
PRECISIONS = ("float32", "int8", "float16")


@dataclass(frozen=True, kw_only=True)
class Dimensions:
    width: int
    heads: int
    feed_forward: int
    encoder_layers: int
    decoder_layers: int
    source_vocabulary: int
    target_vocabulary: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    pad: int
    unknown: int
    begin: int
    end: int


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says about itself."""

    format: int = FORMAT
    name: str
    version: str
    source_language: str
    target_language: str
    precision: str
    dimensions: Dimensions
    max_source_tokens: int
    """End token included; the capacity of the cross caches."""
    max_target_tokens: int
    """End token included; the capacity of the self caches."""
    special_ids: SpecialIds
    source_tokenizer: str
    target_tokenizer: str
    alignment_layer: int
    licence: str
    quality: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    made_with: dict[str, str] = field(default_factory=dict)
    files: dict[str, StoredFile] = field(default_factory=dict)

    @property
    def cache_bytes_per_row(self) -> int:
        """Keys and values of every decoder layer, of both attentions."""
        positions = self.max_source_tokens + self.max_target_tokens
        item = 2 if self.precision == "float16" else 4
        return 2 * self.dimensions.decoder_layers * positions * self.dimensions.width * item

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Raises ``ValueError`` where a key is missing, unknown, or of another type."""
        table = json.loads(text)
        if not isinstance(table, dict) or "format" not in table:
            raise ValueError("not a manifest")
        if table["format"] != FORMAT:
            raise ValueError(f"format {table['format']!r}, but this version reads format {FORMAT}")
        inner = {
            "dimensions": _build(Dimensions, table.get("dimensions")),
            "special_ids": _build(SpecialIds, table.get("special_ids")),
            "files": {
                str(name): _build(StoredFile, stored)
                for name, stored in dict(table.get("files", {})).items()
            },
        }
        return _build(cls, {**table, **inner})


def _build(cls: type[Any], table: Any) -> Any:
    if not isinstance(table, Mapping):
        raise ValueError(f"{cls.__name__} is missing")
    kinds = {f.name: f.type for f in fields(cls)}
    for name, value in table.items():
        if name not in kinds:
            raise ValueError(f"unknown key {name!r}")
        if kinds[name] in (int, str) and type(value) is not kinds[name]:
            raise ValueError(f"{name} is {value!r}")
    try:
        return cls(**table)
    except TypeError as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True)
class Bundle:
    """A bundle that has been checked."""

    path: Path
    manifest: Manifest

    def golden(self) -> list[dict[str, Any]]:
        """Sentences with the ids and scores that the graphs gave when the bundle was made."""
        decoded: list[dict[str, Any]] = json.loads((self.path / GOLDEN).read_text())["sentences"]
        return decoded


def read_bundle(path: Path) -> Bundle:
    """Check a bundle and read its manifest. ``BundleError`` names the file and the reason."""
    if not path.is_dir():
        raise BundleError(f"{path}: no such bundle")
    manifest_path = path / MANIFEST
    try:
        manifest = Manifest.from_json(manifest_path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleError(f"{manifest_path}: {error.strerror}") from None
    except ValueError as error:
        raise BundleError(f"{manifest_path}: {error}") from None
    needed = {*GRAPHS, WEIGHTS, GOLDEN, manifest.source_tokenizer, manifest.target_tokenizer}
    for name in sorted(needed - manifest.files.keys()):
        raise BundleError(f"{manifest_path}: lists no {name}")
    if manifest.precision not in PRECISIONS:
        raise BundleError(f"{manifest_path}: precision {manifest.precision!r} is not known")
    for name, stored in manifest.files.items():
        _check_file(path, name, stored)
    for name in GRAPHS:
        _check_references(path / name)
    return Bundle(path, manifest)


def _check_file(directory: Path, name: str, stored: StoredFile) -> None:
    file = directory / name
    if Path(name).name != name or name in ("", ".", ".."):
        raise BundleError(f"{directory / MANIFEST}: {name!r} is not a plain file name")
    if file.is_symlink():
        raise BundleError(f"{file}: a symbolic link, which a bundle must not hold")
    try:
        size = file.stat().st_size
        if size != stored.bytes:
            raise BundleError(f"{file}: {size} bytes, but the manifest says {stored.bytes}")
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise BundleError(f"{file}: {error.strerror}") from None
    if digest != stored.sha256:
        raise BundleError(f"{file}: its content is not what the manifest says (sha256)")


def _check_references(graph: Path) -> None:
    try:
        referred = external_files(graph.read_bytes())
    except ValueError as error:
        raise BundleError(f"{graph}: not an ONNX graph ({error})") from None
    for name in sorted(referred - {WEIGHTS}):
        raise BundleError(f"{graph}: refers to {name!r}, and may refer to {WEIGHTS} only")
