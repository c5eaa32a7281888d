"""From checkpoint to bundle: write the graphs, prove them, and only then give them their name."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dragoman_export.bundle_files import finish, write_unverified
from dragoman_export.errors import ExportError
from dragoman_export.graphs.calibration import input_ranges
from dragoman_export.graphs.precision import Quantization
from dragoman_export.graphs.weights import weights_for_graphs
from dragoman_export.progress import Watch
from dragoman_export.proofs.against_torch import RAGGED_ROWS, check_against_model
from dragoman_export.proofs.batch_invariance import check_batch_invariance
from dragoman_export.proofs.golden import golden_decodings
from dragoman_export.proofs.quality import (
    MAX_BLEU_LOST,
    TextQuality,
    Translations,
    check_quality,
    compare_quality,
    translate_ids,
)
from dragoman_export.source import Origin
from dragoman_export.texts import (
    LexiconText,
    ParallelSample,
    calibration_ids,
    fitting,
    golden_sources,
    learn_shortlist,
)
from dragoman_server.bundle.golden import GOLDEN
from dragoman_server.bundle.manifest import PRECISIONS
from dragoman_server.bundle.reading import Bundle, RunnableBundle, UncheckedBundle, read_bundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine.settings import available_cores
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.files import staged_directory

_COMPARED = 10
"""Sentences that are decoded alone and in batches, and compared bit by bit."""


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """What a bundle is called, and in which precision its graphs are."""

    name: str
    """Name of the model."""
    version: str = "1"
    """Version of the model."""
    precision: str = "float32"
    """Precision of the graphs: ``float32``, ``int8`` or ``float16``."""
    keep_float32: tuple[str, ...] = ()
    """Matrix products that stay float32 in an int8 bundle, as patterns of their names."""
    licence: str = "unknown"
    """Licence of the model, as an SPDX identifier."""
    max_bleu_lost: float = MAX_BLEU_LOST
    """Most BLEU that the bundle may lose against float32; more leaves no bundle."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision is {self.precision!r}: it must be one of {', '.join(PRECISIONS)}"
            )
        if self.keep_float32 and self.precision != "int8":
            raise ValueError("keep_float32 is for int8: other precisions have no such products")
        if not 0 <= self.max_bleu_lost <= 100:
            raise ValueError(
                f"max_bleu_lost is {self.max_bleu_lost}: it must be at least 0 and at most 100"
            )
        for field in ("name", "version"):
            if not getattr(self, field):
                raise ValueError(f"{field} is empty")


def export_bundle(
    origin: Origin,
    path: Path,
    settings: ExportSettings,
    sample: ParallelSample | None,
    watch: Watch,
    lexicon: LexiconText | None = None,
) -> Bundle:
    """Write a bundle, verify it, and return it as it was read again.

    On any failure nothing is left at or beside the path. ``sample`` may be None for float32, and
    for int8 if the origin knows how large the inputs of products become. With ``lexicon``, the
    bundle gets a shortlist of its own, and not the origin's.
    """
    if lexicon is not None:
        _check_may_have_shortlist(origin, settings)
    if sample is None and not _may_go_unmeasured(origin, settings.precision):
        raise ExportError(
            f"{settings.precision} must be measured on text: give --source and --reference"
        )
    path = path.resolve()
    _check_is_free(path)
    if sample is not None:
        sample = fitting(origin, sample)
    with TemporaryDirectory() as scratch, staged_directory(path) as staging:
        # The float32 graphs are proved against PyTorch, and are what other precisions are held to.
        plain = staging if settings.precision == "float32" else Path(scratch)
        watch("writing graphs", 0, 1)
        float32 = replace(settings, precision="float32", keep_float32=())
        reference = bundle = _write(origin, plain, float32)
        proved = graphs = _opened(reference)
        measured: dict[str, Any] = {
            "float32_log_prob_error": check_against_model(graphs, origin.model, watch)
        }
        in_float32: Translations = {}
        if sample is not None:
            texts = _texts(origin, settings, sample)
            in_float32 = translate_ids(reference, texts, origin.start, watch)
        if settings.precision != "float32":
            shortlist = origin.shortlist if settings.precision == "int8" else None
            if lexicon is not None:
                shortlist = learn_shortlist(origin, lexicon, watch)
            watch("calibrating", 0, 1)
            quantization = _quantization(origin, settings, sample, in_float32)
            bundle = _write(origin, staging, settings, quantization, shortlist)
            graphs = _opened(bundle)
        if sample is not None:
            quality = _measure(origin, bundle, sample, in_float32, watch)
            measured |= {**asdict(quality), "max_bleu_lost": settings.max_bleu_lost}
            check_quality(bundle.manifest, quality, settings.max_bleu_lost)
        bundle = replace(bundle, manifest=replace(bundle.manifest, quality=measured))
        sources = golden_sources(origin, bundle.manifest, sample)
        if settings.precision != "float16":
            watch("comparing sentences alone and in batches", 0, 1)
            check_batch_invariance(
                graphs, sources[:_COMPARED], batches=2 * _COMPARED, directory=staging
            )
        watch("decoding golden sentences", 0, 1)
        # float16 decodes differently on a CPU and on a GPU: float32 is what both are near.
        decider = proved if settings.precision == "float16" else graphs
        finish(bundle, golden_decodings(decider, sources, start=origin.start))
        checked = read_bundle(staging)
    return replace(checked, path=path)


def _opened(bundle: RunnableBundle) -> Graphs:
    """Return a bundle's graphs to prove things with: opening them takes seconds."""
    return Graphs(bundle, GraphSettings(rows=RAGGED_ROWS, threads=available_cores()))


def _may_go_unmeasured(origin: Origin, precision: str) -> bool:
    """Tell whether a bundle needs no text: float32, or int8 with the ranges of activations."""
    if precision == "int8":
        return origin.quantization is not None and bool(origin.quantization.highest)
    return precision == "float32"


def _check_may_have_shortlist(origin: Origin, settings: ExportSettings) -> None:
    """Raise ``ExportError`` for a bundle that can't have a shortlist."""
    if settings.precision != "int8":
        raise ExportError(f"a shortlist is for int8, not {settings.precision}")
    for side in ("source", "target"):
        if len(origin.manifest.get(f"{side}_languages", {})) > 1:
            raise ExportError(
                "a shortlist is learnt for one pair of languages, and the bundle has several "
                f"{side} languages: choose one by --{side}-language"
            )


def _check_is_free(path: Path) -> None:
    """Raise ``ExportError`` if anything but a bundle stands there: it is not ours to remove."""
    if not path.name or (path.exists() and not path.is_dir()):
        raise ExportError(f"{path}: not a place for a bundle")
    if path.is_dir() and any(path.iterdir()) and not (path / GOLDEN).is_file():
        raise ExportError(f"{path}: neither empty nor a bundle")


def _write(
    origin: Origin,
    directory: Path,
    settings: ExportSettings,
    quantization: Quantization | None = None,
    shortlist: Shortlist | None = None,
) -> UncheckedBundle:
    """Write graphs, weights and tokenizers; the manifest is not on disk yet."""
    return write_unverified(
        origin.model,
        directory,
        settings.precision,
        keep_float32=settings.keep_float32,
        ends=origin.ends,
        shortlist=shortlist,
        quantization=quantization,
        files=origin.files,
        facts={
            "name": settings.name,
            "version": settings.version,
            "licence": settings.licence,
            "special_ids": origin.special,
            "made_with": {
                package: version(package)
                for package in ("dragoman", "torch", "onnx", "onnxruntime")
            },
            **origin.manifest,
            "provenance": _made_of(origin),
        },
    )


def _made_of(origin: Origin) -> dict[str, Any]:
    """Return where a model comes from, and what it is made of where no recipe says so."""
    told: dict[str, Any] = origin.manifest["provenance"]
    return told if "recipe" in told else {**told, "model": asdict(origin.model.settings)}


def _texts(origin: Origin, settings: ExportSettings, sample: ParallelSample) -> list[Sequence[int]]:
    """Return what is translated in float32: text to measure on, and to calibrate with."""
    is_int8 = settings.precision == "int8"
    return [*origin.encode(sample.sources), *(calibration_ids(origin, sample) if is_int8 else ())]


def _quantization(
    origin: Origin,
    settings: ExportSettings,
    sample: ParallelSample | None,
    in_float32: Translations,
) -> Quantization | None:
    """Return the scales of int8: as the model came, or as its translations of text call for."""
    known = origin.quantization or Quantization({}, {})
    if settings.precision != "int8" or known.highest:
        return known
    sources = [source for source in calibration_ids(origin, sample) if source]
    translations = [in_float32[tuple(source)] for source in sources]
    weights = weights_for_graphs(origin.model)
    found = input_ranges(origin.model, weights, sources, origin.ends, translations)
    return replace(known, highest=found.highest, lowest=found.lowest)


def _measure(
    origin: Origin,
    bundle: RunnableBundle,
    sample: ParallelSample,
    in_float32: Translations,
    watch: Watch,
) -> TextQuality:
    """Translate the sample, and compare it with what float32 makes of it."""
    sources = origin.encode(sample.sources)
    ours = in_float32
    if bundle.manifest.precision != "float32":
        ours = translate_ids(bundle, sources, origin.start, watch)
    return compare_quality(
        [ours[tuple(source)] for source in sources],
        [in_float32[tuple(source)] for source in sources],
        sample.references,
        origin.target.decode,
        origin.measured_language,
        sample.name,
    )
