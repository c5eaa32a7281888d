"""The files of a bundle: first graphs, weights and tokenizers, and the manifest last of all.

Nothing here proves anything: ``dragoman_export.export`` does, before it lets a bundle have its
name. Tests and benchmarks take unverified bundles as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman_export.graphs.precision import Quantization
from dragoman_export.graphs.writer import write_graphs
from dragoman_server.bundle.golden import GOLDEN, Golden, write_golden
from dragoman_server.bundle.manifest import MANIFEST, SHORTLIST, Manifest, SpecialIds, StoredFile
from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.data.tokenizer import BEGIN, END, OURS, PAD, UNKNOWN, Ends
from dragoman_training.files import sha256
from dragoman_training.models.transformer import Transformer

UNNAMED: Mapping[str, Any] = {
    "name": "unverified",
    "version": "1",
    "source_language": "",
    "target_language": "",
    "special_ids": SpecialIds(pad=PAD, unknown=UNKNOWN, begin=BEGIN, end=END),
    "source_tokenizer": "",
    "target_tokenizer": "",
    "licence": "",
}
"""What the manifest of an unverified bundle says where nothing else is given."""


def write_unverified(
    model: Transformer,
    directory: Path,
    precision: str,
    *,
    calibration: Sequence[Sequence[int]] = (),
    keep_float32: Sequence[str] = (),
    ends: Ends = OURS,
    shortlist: Shortlist | None = None,
    quantization: Quantization | None = None,
    files: Mapping[str, bytes] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> UncheckedBundle:
    """Write a model's graphs and weights, and other files, but no manifest yet.

    ``calibration`` has sentences, as ids, to find the scales of int8 on, where ``quantization``
    does not know them. ``facts`` are keys of the manifest that the model does not decide.
    """
    alignment_layer = model.settings.decoder_layers - 1
    dimensions = write_graphs(
        model,
        directory,
        precision,
        alignment_layer,
        calibration,
        keep_float32,
        ends,
        shortlist,
        quantization,
    )
    for name, content in (files or {}).items():
        (directory / name).write_bytes(content)
    manifest = Manifest(
        precision=precision,
        dimensions=dimensions,
        decoder=model.settings.decoder,
        max_source_tokens=model.settings.max_length,
        max_target_tokens=model.settings.max_length,
        alignment_layer=alignment_layer,
        shortlist=SHORTLIST if shortlist else "",
        **{**UNNAMED, **(facts or {})},
    )
    return UncheckedBundle(directory, manifest, shortlist)


def finish(bundle: UncheckedBundle, golden: Sequence[Golden]) -> None:
    """Write golden decodings, and then the manifest with size and hash of every file."""
    write_golden(bundle.path / GOLDEN, golden)
    files = {
        file.name: StoredFile(bytes=file.stat().st_size, sha256=sha256(file))
        for file in sorted(bundle.path.iterdir())
    }
    manifest = replace(bundle.manifest, files=files)
    (bundle.path / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
