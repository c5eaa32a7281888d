"""From checkpoint to bundle: write the graphs, prove them, and only then give them their name."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_export.graphs.writer import write_graphs
from dragoman_export.progress import Watch
from dragoman_export.proofs.against_torch import RAGGED, check_against_model
from dragoman_export.proofs.batch_invariance import check_company
from dragoman_export.proofs.golden import golden_decodings
from dragoman_export.proofs.quality import (
    TextQuality,
    check_quality,
    compare_quality,
    translate_ids,
    translate_listed,
)
from dragoman_export.source import Origin, origin_of
from dragoman_export.texts import (
    LexiconText,
    ParallelSample,
    calibration_ids,
    golden_candidates,
    learn_shortlist,
    that_fits,
)
from dragoman_server.bundle.golden import GOLDEN
from dragoman_server.bundle.manifest import (
    MANIFEST,
    PRECISIONS,
    SHORTLIST,
    Manifest,
    StoredFile,
)
from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.files import sha256, staged_directory

_ROWS = 64
_COMPANY = 20
"""Sentences, and random batches of them, to compare bit by bit."""


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    name: str
    version: str = "1"
    precision: str = "float32"
    keep_float32: tuple[str, ...] = ()
    """Patterns of names of products that stay float32 in an int8 bundle."""
    licence: str = "unknown"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision is {self.precision!r}: it must be one of {', '.join(PRECISIONS)}"
            )
        if self.keep_float32 and self.precision != "int8":
            raise ValueError("keep_float32 is for int8: other precisions have no such products")
        for field in ("name", "version"):
            if not getattr(self, field):
                raise ValueError(f"{field} is empty")


def export_bundle(
    checkpoint: Checkpoint,
    path: Path,
    settings: ExportSettings,
    sample: ParallelSample | None,
    watch: Watch,
    lexicon: LexiconText | None = None,
) -> Manifest:
    """Write a checkpoint as a bundle; see ``export_origin``."""
    return export_origin(origin_of(checkpoint), path, settings, sample, watch, lexicon)


def export_origin(
    origin: Origin,
    path: Path,
    settings: ExportSettings,
    sample: ParallelSample | None,
    watch: Watch,
    lexicon: LexiconText | None = None,
) -> Manifest:
    """Write a bundle and verify it. On any failure nothing is left at or beside the path."""
    if lexicon is not None:
        _check_may_have_shortlist(origin, settings)
    if settings.precision != "float32" and sample is None:
        raise ExportError(
            f"{settings.precision} must be measured on text: give --source and --reference"
        )
    path = path.resolve()
    _check_is_free(path)
    if sample is not None:
        sample = that_fits(origin, sample)
    with TemporaryDirectory() as scratch, staged_directory(path) as staging:
        # The float32 graphs are proved against PyTorch, and are what other precisions are held to.
        plain = staging if settings.precision == "float32" else Path(scratch)
        watch("writing graphs", 0, 1)
        float32 = replace(settings, precision="float32", keep_float32=())
        manifest = _write(origin, plain, float32, [])
        bundle = Bundle(plain, manifest)
        error = check_against_model(Graphs(bundle, GraphSettings(rows=RAGGED)), origin.model, watch)
        if settings.precision != "float32":
            watch("calibrating", 0, 1)
            calibration = calibration_ids(origin, sample)
            shortlist = None if lexicon is None else learn_shortlist(origin, lexicon, watch)
            manifest = _write(origin, staging, settings, calibration, shortlist)
        quality = _measure(origin, bundle, Bundle(staging, manifest), sample, watch)
        if quality is not None:
            check_quality(manifest, quality)
        manifest = replace(
            manifest,
            quality={
                "float32_log_prob_error": error,
                **({} if quality is None else asdict(quality)),
            },
        )
        if settings.precision != "float16":
            watch("comparing sentences alone and in company", 0, 1)
            _check_company(origin, Bundle(staging, manifest), sample)
        # float16 decodes differently on a CPU and on a GPU: float32 is what both are near.
        decider = bundle if settings.precision == "float16" else Bundle(staging, manifest)
        _finish(origin, staging, manifest, decider, sample)
        return read_bundle(staging).manifest


def _check_may_have_shortlist(origin: Origin, settings: ExportSettings) -> None:
    if settings.precision != "int8":
        raise ExportError(f"a shortlist is for int8, not {settings.precision}")
    for side in ("source", "target"):
        if len(origin.manifest.get(f"{side}_languages", {})) > 1:
            raise ExportError(
                "a shortlist is learnt for one pair of languages, and the bundle has several "
                f"{side} languages: choose one by --{side}-language"
            )


def _check_is_free(path: Path) -> None:
    """Only a bundle is replaced: nothing else that may stand there is ours to remove."""
    if not path.name or (path.exists() and not path.is_dir()):
        raise ExportError(f"{path}: not a place for a bundle")
    if path.is_dir() and any(path.iterdir()) and not (path / GOLDEN).is_file():
        raise ExportError(f"{path}: neither empty nor a bundle")


def _check_company(origin: Origin, bundle: Bundle, sample: ParallelSample | None) -> None:
    graphs = Graphs(bundle, GraphSettings(rows=RAGGED))
    sources = golden_candidates(origin, bundle.manifest, sample)
    check_company(graphs, sources[:_COMPANY], batches=_COMPANY)


def _write(
    origin: Origin,
    directory: Path,
    settings: ExportSettings,
    calibration: Sequence[Sequence[int]],
    shortlist: Shortlist | None = None,
) -> Manifest:
    """Graphs, weights and tokenizers; the manifest is not on disk yet."""
    architecture = origin.model.settings
    alignment_layer = architecture.decoder_layers - 1
    dimensions = write_graphs(
        origin.model,
        directory,
        settings.precision,
        alignment_layer,
        calibration,
        settings.keep_float32,
        origin.ends,
        shortlist,
    )
    for name, content in origin.files.items():
        (directory / name).write_bytes(content)
    return Manifest(
        name=settings.name,
        version=settings.version,
        precision=settings.precision,
        dimensions=dimensions,
        max_source_tokens=architecture.max_length,
        max_target_tokens=architecture.max_length,
        special_ids=origin.special,
        alignment_layer=alignment_layer,
        licence=settings.licence,
        shortlist=SHORTLIST if shortlist else "",
        made_with={
            package: version(package) for package in ("dragoman", "torch", "onnx", "onnxruntime")
        },
        **origin.manifest,
    )


def _measure(
    origin: Origin,
    plain: Bundle,
    bundle: Bundle,
    sample: ParallelSample | None,
    watch: Watch,
) -> TextQuality | None:
    if sample is None:
        return None
    sources = origin.encode(sample.sources)
    decoded: dict[str, list[tuple[int, ...]]] = {}
    for each in (plain, bundle):
        precision = each.manifest.precision
        if precision not in decoded:
            translate = translate_listed if each.manifest.shortlist else translate_ids
            decoded[precision] = translate(
                each, sources, origin.start, f"translating in {precision}", watch
            )
    return compare_quality(
        decoded[bundle.manifest.precision],
        decoded[plain.manifest.precision],
        sample.references,
        origin.target.decode,
        origin.measured_language,
    )


def _finish(
    origin: Origin,
    directory: Path,
    manifest: Manifest,
    decider: Bundle,
    sample: ParallelSample | None,
) -> None:
    """Golden decodings, then the manifest with the hash of every file."""
    graphs = Graphs(decider, GraphSettings(rows=_ROWS))
    golden = golden_decodings(
        graphs, golden_candidates(origin, manifest, sample), start=origin.start
    )
    content: dict[str, Any] = {"sentences": golden}
    (directory / GOLDEN).write_text(json.dumps(content, indent=1) + "\n")
    files = {
        file.name: StoredFile(bytes=file.stat().st_size, sha256=sha256(file))
        for file in sorted(directory.iterdir())
    }
    (directory / MANIFEST).write_text(replace(manifest, files=files).to_json(), encoding="utf-8")
