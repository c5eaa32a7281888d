"""A bundle read back into a checkpoint: float weights of what its graphs hold.

For a run that lost its checkpoints, and for whom a bundle is all there is of a model. int8 weights
are whole numbers with a step for each row; their products are float32 weights again, up to the
rounding of the export. What a bundle does not have is what an optimizer knew.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from dragoman_export.graphs.weights import (
    CellWeights,
    LinearWeights,
    NormWeights,
    weights_for_graphs,
)
from dragoman_server.bundle.graph_io import DECODER, ENCODER
from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.errors import BundleError
from dragoman_training.data.tokenizer import OURS, Ends, TokenizerPair, foreign_pair
from dragoman_training.errors import CheckpointError
from dragoman_training.models.build import settings_from_dict
from dragoman_training.models.layers import DecoderLayer, EncoderLayer, FeedForward
from dragoman_training.models.positions import LearnedPositions
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Embedding, Transformer
from dragoman_training.train.checkpoint import Checkpoint, weights_of

Floats = npt.NDArray[np.float32]

_OF_VOCABULARIES = (
    *("source_tokenizer", "target_tokenizer", "source_vocabulary", "target_vocabulary"),
    *("source_languages", "target_languages", "target_language_in"),
    *("source_without_end", "ends_in_beam"),
)
"""Keys of a manifest that belong to the vocabularies, and stay with them."""

_WEIGHTS = (
    *(".matrix", ".matrix_t", ".matrix_s8", ".steps", ".bias", ".gamma", ".beta"),
    *(".table", ".table_s8", ".table_steps", ".rows_s8"),
)
"""How the names of what was learnt end."""


def checkpoint_of_bundle(
    path: Path, source_language: str = "", target_language: str = ""
) -> Checkpoint:
    """Return the model of a bundle, without the state of its training.

    The languages say which pair of a model of several is meant.
    """
    try:
        bundle = read_bundle(path)
    except BundleError as error:
        raise CheckpointError(str(error)) from None
    model = read_back(bundle)
    manifest = bundle.manifest
    vocabularies = {
        "source_vocabulary": model.source_vocabulary,
        "target_vocabulary": model.target_vocabulary,
    }
    config: dict[str, Any] = {
        **manifest.provenance,
        "model": {**_model_table(bundle), **vocabularies},
        "source_language": manifest.source_language,
        "target_language": manifest.target_language,
    }
    tokenizers = _tokenizers(bundle, source_language, target_language)
    return Checkpoint(config, weights_of(model), tokenizers)


def _tokenizers(bundle: Bundle, source_language: str, target_language: str) -> TokenizerPair:
    manifest, special = bundle.manifest, bundle.manifest.special_ids
    source = _language(bundle, "source", source_language)
    target = _language(bundle, "target", target_language)
    in_source = manifest.target_language_in == "source"
    ends = Ends(
        begin=special.begin,
        end=special.end,
        ends_source=not manifest.source_without_end,
        start=() if in_source else target,
        before=(*source, *(target if in_source else ())),
        in_beam=manifest.ends_in_beam,
    )
    shortlist = (bundle.path / manifest.shortlist).read_bytes() if manifest.shortlist else b""
    if ends == OURS and not manifest.source_vocabulary:
        return replace(TokenizerPair.load(bundle.path), shortlist=shortlist)
    told = asdict(manifest)
    kept = {key: told[key] for key in _OF_VOCABULARIES if told[key]}
    for side, tokens, tag in (
        ("source", source, source_language),
        ("target", target, target_language),
    ):
        if tokens:
            kept[f"{side}_languages"] = {tag: tokens[0]}
    names = [kept[key] for key in _OF_VOCABULARIES[:4] if key in kept]
    sizes = manifest.dimensions
    return foreign_pair(
        {name: (bundle.path / name).read_bytes() for name in names},
        (sizes.source_vocabulary, sizes.target_vocabulary),
        ends,
        special.pad,
        kept,
        shortlist,
    )


def _language(bundle: Bundle, side: str, tag: str) -> tuple[int, ...]:
    """Return the token of a language, in a model that has tokens of languages."""
    known: dict[str, int | None] = getattr(bundle.manifest, f"{side}_languages")
    if not known:
        return ()
    if tag not in known:
        raise CheckpointError(
            f"{bundle.path}: has no {side} language {tag!r}, but {', '.join(known)}"
        )
    token = known[tag]
    return () if token is None else (token,)


def read_back(bundle: Bundle) -> Transformer:
    """Return the model that a bundle was made of. Its manifest must say how it was trained."""
    sizes = bundle.manifest.dimensions
    model = Transformer(
        _settings(bundle),
        source_vocabulary=sizes.source_vocabulary,
        target_vocabulary=sizes.target_vocabulary,
    ).eval()
    stored = _Stored(bundle.path)
    with torch.no_grad():
        _fill(model, stored)
    stored.check_all_used()
    return model


def _settings(bundle: Bundle) -> TransformerSettings:
    try:
        settings = settings_from_dict(_model_table(bundle))
    except (KeyError, TypeError, ValueError):
        settings = None
    if not isinstance(settings, TransformerSettings):
        raise CheckpointError(
            f"{bundle.path}: the bundle does not say how its model was trained or what it is made "
            "of, so it can't be trained further; if it was imported, import it again"
        )
    return settings


def _model_table(bundle: Bundle) -> dict[str, Any]:
    """Return the settings of the model, as a recipe or an importer left them."""
    told = bundle.manifest.provenance
    table: dict[str, Any] = told["model"] if "model" in told else told["recipe"]["model"]
    return table


class _Stored:
    """What the graphs of a bundle hold, by name; remembers what was asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrays: dict[str, npt.NDArray[np.generic]] = {}
        for name in (ENCODER, DECODER):
            for tensor in onnx.load(path / name).graph.initializer:
                self._arrays[tensor.name] = numpy_helper.to_array(tensor)
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> Floats:
        if name not in self._arrays:
            raise CheckpointError(f"{self._path}: its graphs have no {name}")
        self._used.add(name)
        return self._arrays[name].astype(np.float32)

    def matrix(self, name: str) -> Floats:
        """The matrix of a product, as [out, in], whatever precision it has."""
        if f"{name}.rows_s8" in self:
            return self[f"{name}.rows_s8"] * self[f"{name}.steps"][:, None]
        if f"{name}.matrix_s8" in self:
            return self[f"{name}.matrix_s8"].T * self[f"{name}.steps"][:, None]
        return self[f"{name}.matrix_t"].T if f"{name}.matrix_t" in self else self[f"{name}.matrix"]

    def table(self, name: str, scale: float) -> Floats:
        """An embedding's vectors, without the scale that its steps may be multiplied by."""
        for kept, is_by_row in ((f"{name}.rows_s8", True), (f"{name}.table_s8", False)):
            if kept in self:
                rows = self[kept] if is_by_row else self[kept].T
                return rows * (self[f"{name}.table_steps"] / np.float32(scale))
        return self[f"{name}.table"]

    def check_all_used(self) -> None:
        """A weight that nothing asked for would be missing from the model."""
        for name in sorted(self._arrays.keys() - self._used):
            if name.endswith(_WEIGHTS):
                raise CheckpointError(f"{self._path}: the model has no place for {name}")


def _fill(model: Transformer, stored: _Stored) -> None:
    names = weights_for_graphs(model)
    for layer, own in zip(model.encoder, names.encoder, strict=True):
        assert isinstance(layer, EncoderLayer)
        _linear(layer.attention.query, stored, own.query)
        _linear(layer.attention.key_value, stored, own.key, own.value)
        _linear(layer.attention.output, stored, own.attention_output)
        _norm(layer.attention_residual.norm, stored, own.attention_norm)
        _feed_forward(layer.feed_forward, stored, own.feed_forward.widen, own.feed_forward.narrow)
        _norm(layer.feed_forward_residual.norm, stored, own.feed_forward_norm)
    for block, its in zip(model.decoder, names.decoder, strict=True):
        assert isinstance(block, DecoderLayer)
        if isinstance(its.look_back, CellWeights):
            _together((block.ssru.forget, block.ssru.input), stored, its.look_back.forget_input)
        else:
            own_past = block.self_attention
            _together((own_past.query, own_past.key_value), stored, its.look_back.query_key_value)
            _linear(own_past.output, stored, its.look_back.output)
        _norm(block.self_residual.norm, stored, its.self_norm)
        _linear(block.cross_attention.query, stored, its.query)
        _linear(block.cross_attention.key_value, stored, its.key, its.value)
        _linear(block.cross_attention.output, stored, its.cross_output)
        _norm(block.cross_residual.norm, stored, its.cross_norm)
        _feed_forward(block.feed_forward, stored, its.feed_forward.widen, its.feed_forward.narrow)
        _norm(block.feed_forward_residual.norm, stored, its.feed_forward_norm)
    for module, norm in (
        (model.encoder_norm, names.encoder_norm),
        (model.decoder_norm, names.decoder_norm),
    ):
        if norm is not None:
            _norm(module, stored, norm)
    _embedding(model.source_embedding, stored, names.source.name)
    _embedding(model.target_embedding, stored, names.target.name)
    # Last: where it is the table too, it may have been kept in a better precision.
    _linear(model.projection, stored, names.projection)


def _set(parameter: nn.Parameter | torch.Tensor, value: Floats) -> None:
    if tuple(parameter.shape) != value.shape:
        raise CheckpointError(
            f"the bundle's weights do not fit its architecture: {list(value.shape)}, "
            f"not {list(parameter.shape)}"
        )
    parameter.copy_(torch.from_numpy(np.array(value)))  # a copy: what is read from a file is fixed


def _linear(module: nn.Linear, stored: _Stored, *parts: LinearWeights) -> None:
    """Fill one module from the products that the graphs compute of it."""
    _set(module.weight, np.concatenate([stored.matrix(part.name) for part in parts]))
    if module.bias is not None:
        _set(module.bias, np.concatenate([stored[f"{part.name}.bias"] for part in parts]))


def _together(modules: tuple[nn.Linear, ...], stored: _Stored, one: LinearWeights) -> None:
    """Fill several modules from the product that computes them all."""
    matrix, bias = stored.matrix(one.name), stored[f"{one.name}.bias"]
    at = 0
    for module in modules:
        end = at + module.out_features
        _set(module.weight, matrix[at:end])
        if module.bias is not None:
            _set(module.bias, bias[at:end])
        at = end


def _feed_forward(
    module: FeedForward, stored: _Stored, widen: LinearWeights, narrow: LinearWeights
) -> None:
    _linear(module.widen, stored, widen)
    _linear(module.narrow, stored, narrow)


def _norm(module: nn.Module, stored: _Stored, names: NormWeights) -> None:
    assert isinstance(module, nn.LayerNorm)
    _set(module.weight, stored[f"{names.name}.gamma"])
    _set(module.bias, stored[f"{names.name}.beta"])


def _embedding(module: Embedding, stored: _Stored, name: str) -> None:
    _set(module.table.weight, stored.table(name, module.scale))
    if isinstance(module.positions, LearnedPositions):
        _set(module.positions.weight, stored[f"{name}.positions"])
