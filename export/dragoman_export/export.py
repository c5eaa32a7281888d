"""From checkpoint to bundle: write the graphs, prove them, and only then give them their name."""

import fnmatch
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_export.graphs.builder import WeightFile
from dragoman_export.graphs.calibration import largest_inputs
from dragoman_export.graphs.precision import Float, Int8, Precision
from dragoman_export.graphs.weights import weights_for_graphs
from dragoman_export.graphs.writer import GraphWriter
from dragoman_export.lexicon import LexiconSettings, shortlist_from
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
from dragoman_server.bundle.golden import GOLDEN
from dragoman_server.bundle.graph_io import COLUMNS, DECODER, ENCODER, LISTED, MOVE
from dragoman_server.bundle.manifest import (
    MANIFEST,
    PRECISIONS,
    SHORTLIST,
    WEIGHTS,
    Dimensions,
    Manifest,
    StoredFile,
)
from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.files import sha256, staged_directory
from dragoman_training.search import OURS, Ends
from dragoman_training.transformer import Transformer

_ROWS = 64
_COMPANY = 20
"""Sentences, and random batches of them, to compare bit by bit."""
_TOGETHER = 1000
"""Sentence pairs that are tokenized at a time."""
CALIBRATION = 300
"""Sentences that the scales of int8 are found on."""


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


@dataclass(frozen=True)
class ParallelSample:
    """Text to measure quality on, and other text to find the scales of int8 on."""

    sources: Sequence[str]
    references: Sequence[str]
    calibration: Sequence[str] = ()
    """Where there is none, the sources serve for both."""
    golden: Sequence[str] = ()
    """Sentences for the golden decodings, where it should not be the sources."""


@dataclass(frozen=True)
class LexiconText:
    """Parallel text to learn a shortlist from."""

    pairs: Iterable[tuple[str, str]]
    settings: LexiconSettings


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
        sample = _that_fits(origin, sample)
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
            calibration = _calibration(origin, sample)
            shortlist = None if lexicon is None else _shortlist(origin, lexicon, watch)
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


def _that_fits(origin: Origin, sample: ParallelSample) -> ParallelSample:
    """The sentences that have text and that the model can take."""

    def fits(text: str) -> bool:
        (ids,) = origin.encode([text])
        return bool(text.strip()) and 0 < len(ids) <= origin.most_source_tokens

    pairs = [p for p in zip(sample.sources, sample.references, strict=True) if fits(p[0])]
    if not pairs:
        raise ExportError("the text to measure on has no sentence that the model can take")
    sources, references = zip(*pairs, strict=True)
    calibration, golden = (
        [t for t in texts if fits(t)] for texts in (sample.calibration, sample.golden)
    )
    return ParallelSample(sources, references, calibration, golden)


def _check_company(origin: Origin, bundle: Bundle, sample: ParallelSample | None) -> None:
    graphs = Graphs(bundle, GraphSettings(rows=RAGGED))
    sources = _candidates(origin, bundle.manifest, sample)
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


def write_graphs(
    model: Transformer,
    directory: Path,
    precision: str,
    alignment_layer: int,
    calibration: Sequence[Sequence[int]] = (),
    keep_float32: Sequence[str] = (),
    ends: Ends = OURS,
    shortlist: Shortlist | None = None,
) -> Dimensions:
    """The graphs and their weights; int8 needs sentences, as ids, to find its scales on."""
    architecture = model.settings
    dimensions = Dimensions(
        width=architecture.width,
        heads=architecture.heads,
        feed_forward=architecture.feed_forward,
        encoder_layers=architecture.encoder_layers,
        decoder_layers=architecture.decoder_layers,
        source_vocabulary=model.source_vocabulary,
        target_vocabulary=model.target_vocabulary,
    )
    file = WeightFile(WEIGHTS)
    weights = weights_for_graphs(model)
    names = [linear.name for linear in weights.linears()]
    for pattern in keep_float32:
        if not fnmatch.filter(names, pattern):
            raise ExportError(f"no product is named like {pattern!r}; there are {', '.join(names)}")
    way: Precision = (
        Int8(largest_inputs(model, weights, calibration, ends), keep_float32)
        if precision == "int8"
        else Float(precision)
    )
    writer = GraphWriter(
        weights,
        dimensions,
        way,
        file,
        max_source=architecture.max_length,
        max_target=architecture.max_length,
        alignment_layer=alignment_layer,
    )
    graphs = {ENCODER: writer.encoder(), DECODER: writer.decoder(), MOVE: writer.move()}
    if shortlist is not None:
        if not isinstance(way, Int8) or way.keeps(weights.projection):
            raise ExportError("a shortlist is for int8, and its projection must not stay float32")
        graphs |= {LISTED: writer.listed_decoder(), COLUMNS: writer.columns()}
        shortlist.save(directory / SHORTLIST)
    for name, graph in graphs.items():
        graph.save(directory / name)
    (directory / WEIGHTS).write_bytes(file.content)
    return dimensions


def _calibration(origin: Origin, sample: ParallelSample | None) -> list[list[int]]:
    """Sentences to find scales on: spread over the text."""
    texts = [] if sample is None else list(sample.calibration or sample.sources)
    stride = max(1, len(texts) // CALIBRATION)
    return origin.encode(texts[::stride][:CALIBRATION])


def _shortlist(origin: Origin, lexicon: LexiconText, watch: Watch) -> Shortlist:
    def as_ids() -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        pairs = iter(lexicon.pairs)
        while some := list(islice(pairs, _TOGETHER)):
            sources, targets = zip(*some, strict=True)
            yield from zip(
                origin.encode(sources), origin.target.encode_all(list(targets)), strict=True
            )

    return shortlist_from(
        as_ids(),
        source_vocabulary=origin.model.source_vocabulary,
        target_vocabulary=origin.model.target_vocabulary,
        end=origin.special.end,
        settings=lexicon.settings,
        watch=watch,
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
    golden = golden_decodings(graphs, _candidates(origin, manifest, sample), start=origin.start)
    content: dict[str, Any] = {"sentences": golden}
    (directory / GOLDEN).write_text(json.dumps(content, indent=1) + "\n")
    files = {
        file.name: StoredFile(bytes=file.stat().st_size, sha256=sha256(file))
        for file in sorted(directory.iterdir())
    }
    (directory / MANIFEST).write_text(replace(manifest, files=files).to_json(), encoding="utf-8")


def _candidates(
    origin: Origin, manifest: Manifest, sample: ParallelSample | None
) -> list[list[int]]:
    """Sentences of the text, or made-up ones where there is none."""
    if sample is not None:
        return origin.encode(list(sample.golden or sample.sources)[:200])
    rng = random.Random(1)  # noqa: S311
    vocabulary = manifest.dimensions.source_vocabulary
    longest = min(12, manifest.max_source_tokens - 1)
    return [
        [rng.randrange(4, vocabulary) for _ in range(rng.randint(1, longest))] for _ in range(200)
    ]
