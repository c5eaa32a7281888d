"""Reading bundles, which are checked whole before anything in them is used.

What is checked: the format's version, that every file is there with its size and hash and nothing
else is, and that the graphs refer to no file but the weights. It needs neither PyTorch nor onnx.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoman_server.bundle.external_data import external_files
from dragoman_server.bundle.golden import GOLDEN, Golden, read_golden
from dragoman_server.bundle.manifest import MANIFEST, WEIGHTS, Manifest, StoredFile
from dragoman_server.bundle.shortlist import Shortlist, shortlist_of
from dragoman_server.errors import BundleError


class RunnableBundle(Protocol):
    """What graphs and engines need of a bundle, whether it has been checked or not."""

    @property
    def path(self) -> Path:
        """Directory of the bundle."""

    @property
    def manifest(self) -> Manifest:
        """What the bundle says about itself."""

    @property
    def shortlist(self) -> Shortlist | None:
        """Target tokens that are likely for each source token, where the bundle says so."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle that has been checked: only ``read_bundle`` makes one."""

    path: Path
    """Directory of the bundle."""
    manifest: Manifest
    """What the bundle says about itself."""
    shortlist: Shortlist | None
    """Target tokens that are likely for each source token, if the bundle has a shortlist."""
    golden: list[Golden]
    """Golden decodings of the bundle, at least one."""


@dataclass(frozen=True, eq=False)
class UncheckedBundle:
    """Graphs with their manifest that nobody has checked, as while a bundle is being made."""

    path: Path
    """Directory with the graphs."""
    manifest: Manifest
    """What the bundle is to say about itself."""
    shortlist: Shortlist | None = None
    """Target tokens that are likely for each source token, if there is a shortlist."""


def read_bundle(path: Path) -> Bundle:
    """Check a bundle and read it. Raises ``BundleError``, which names the file and the reason."""
    if not path.is_dir():
        raise BundleError(f"{path}: no such bundle")
    manifest_path = path / MANIFEST
    try:
        manifest = Manifest.from_json(manifest_path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleError(f"{manifest_path}: {error.strerror}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise BundleError(f"{manifest_path}: {error}") from None
    needed = {*manifest.graphs, WEIGHTS, GOLDEN}
    needed |= {manifest.source_tokenizer, manifest.target_tokenizer}
    needed |= {manifest.source_vocabulary, manifest.target_vocabulary, manifest.shortlist} - {""}
    for name in sorted(needed - manifest.files.keys()):
        raise BundleError(f"{manifest_path}: lists no {name}")
    listed = {*manifest.files, MANIFEST}
    for other in sorted(path.iterdir()):
        if other.name not in listed:
            raise BundleError(f"{other}: not listed in the manifest")
        if other.is_symlink() or not other.is_file():
            raise BundleError(f"{other}: not a plain file, and a bundle holds no other")
    for name, stored in manifest.files.items():
        _check_file(path, name, stored)
    for name in manifest.graphs:
        _check_references(path / name)
    return Bundle(
        path, manifest, shortlist_of(path, manifest), read_golden(path / GOLDEN, manifest)
    )


def _check_file(directory: Path, name: str, stored: StoredFile) -> None:
    if Path(name).name != name or name in ("", ".", "..") or "\0" in name:
        raise BundleError(f"{directory / MANIFEST}: {name!r} is not a plain file name")
    file = directory / name
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
