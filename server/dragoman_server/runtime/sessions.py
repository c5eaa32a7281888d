"""A bundle's graphs as sessions of onnxruntime, with the options that all of them run under."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import onnxruntime as ort

from dragoman_server.bundle.graph_io import (
    DECODER,
    ENCODER,
    LISTED_DECODER,
    MOVE,
    OUTPUT_COLUMNS,
    cross_caches,
)
from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.errors import BundleError
from dragoman_server.runtime.checks.bounds import check_caches
from dragoman_server.runtime.limits import PROVIDERS
from dragoman_server.runtime.output_weights import OutputWeights


@dataclass(frozen=True)
class Sessions:
    """The sessions of a bundle's graphs, which have its weights; lanes share them."""

    encoder: ort.InferenceSession
    decoder: ort.InferenceSession
    move: ort.InferenceSession
    listed: ort.InferenceSession | None = None
    """The decoder step among the tokens of shortlists, where the bundle has a shortlist."""
    output_weights: OutputWeights | None = None
    """The output weights of all target tokens, where the bundle has a shortlist."""


def open_sessions(
    bundle: RunnableBundle, device: str, threads: int, spin: bool, prepacked: Path | None = None
) -> Sessions:
    """Open all graphs of a bundle. Raises ``BundleError`` where one is not as the manifest says.

    ``prepacked`` is a directory with the same graphs as ``write_entry`` left them there.
    """

    def opened(name: str) -> ort.InferenceSession:
        if prepacked is None:
            return open_session(bundle.path / name, device, threads, spin)
        return open_session(prepacked / name, device, threads, spin, is_optimized=True)

    manifest = bundle.manifest
    encoder, decoder, move = map(opened, (ENCODER, DECODER, MOVE))
    caches = manifest.row_caches
    cross = {name: caches[name] for name in cross_caches(manifest.dimensions.decoder_layers)}
    check_caches(bundle.path / ENCODER, encoder, cross)
    check_caches(bundle.path / DECODER, decoder, caches)
    check_caches(bundle.path / MOVE, move, caches)
    if not manifest.shortlist:
        return Sessions(encoder, decoder, move)
    listed = opened(LISTED_DECODER)
    check_caches(bundle.path / LISTED_DECODER, listed, caches)
    sizes = manifest.dimensions
    try:
        weights = OutputWeights.read(opened(OUTPUT_COLUMNS), sizes.target_vocabulary, sizes.width)
    except ValueError as error:
        raise BundleError(f"{bundle.path / OUTPUT_COLUMNS}: {error}") from None
    has_biases = "column_biases" in {value.name for value in listed.get_inputs()}
    if has_biases != (weights.biases is not None):
        raise BundleError(
            f"{bundle.path / OUTPUT_COLUMNS}: its biases are not as in {LISTED_DECODER}"
        )
    return Sessions(encoder, decoder, move, listed, weights)


def open_session(
    graph: Path | bytes,
    device: str,
    threads: int,
    spin: bool,
    optimized: Path | None = None,
    *,
    is_optimized: bool = False,
    entries: Mapping[str, str] = MappingProxyType({}),
) -> ort.InferenceSession:
    """Open a graph on this device and no other: onnxruntime would fall back to the CPU in silence.

    ``spin`` lets the threads wait for their part of a product by spinning. ``optimized`` is a file
    to write the graph to as it will be run. ``is_optimized`` takes such a file as it is.
    ``entries`` are further settings of the session.
    """
    provider = PROVIDERS[device]
    if provider not in ort.get_available_providers():
        raise BundleError(f"device {device}: this onnxruntime has no {provider}")
    options = _options(threads, spin)
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
    if is_optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for entry, value in entries.items():
        options.add_session_config_entry(entry, value)
    try:
        session = ort.InferenceSession(
            graph,
            options,
            providers=[provider],
            enable_fallback=0,
            # Fused, the two take several times as long on the CPU.
            disabled_optimizers=["SkipLayerNormFusion"] if device == "cpu" else None,
        )
    except Exception as error:  # onnxruntime has no common class for them
        reason = str(error).splitlines()[0]
        name = graph if isinstance(graph, Path) else "a graph"
        raise BundleError(f"{name}: onnxruntime can't load it ({reason})") from None
    if session.get_providers()[0] != provider:
        raise BundleError(f"device {device}: onnxruntime fell back to {session.get_providers()[0]}")
    return session


def _options(threads: int, spin: bool) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # The level decides which kernels compute what, and with it the last bits of every score.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spin)))
    options.enable_mem_pattern = False  # shapes change from step to step
    options.log_severity_level = 3
    return options
