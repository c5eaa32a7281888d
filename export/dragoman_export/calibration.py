"""How large the inputs of the model's products become, on sentences as it will see them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from dragoman_export.weights import ModelWeights
from dragoman_training.batch import Batch, pad_sources
from dragoman_training.search import default_limit, greedy_search
from dragoman_training.token_store import TokenPair
from dragoman_training.transformer import Transformer

SHARE = 0.99999
"""The range covers this share of the values seen; the few above it are clipped."""
_TOGETHER = 32


@torch.inference_mode()
def largest_inputs(
    model: Transformer, weights: ModelWeights, sources: Sequence[Sequence[int]]
) -> dict[str, float]:
    """For each product by name, over the model's own greedy translations of the sources."""
    model.eval()
    cpu = torch.device("cpu")
    limit = model.settings.max_length
    seen: dict[str, float] = {}
    ordered = sorted((source for source in sources if source), key=len)
    for at in range(0, len(ordered), _TOGETHER):
        batch = ordered[at : at + _TOGETHER]
        limits = [default_limit(len(source), limit) for source in batch]
        found = greedy_search(model, *pad_sources(batch, cpu), limits)
        pairs = Batch.of(
            [
                TokenPair(np.array(source), np.array(hypothesis.ids, np.int64))
                for source, hypothesis in zip(batch, found, strict=True)
            ],
            cpu,
        )
        with _watching(weights, seen):
            model(pairs.source_BS, pairs.source_lengths_B, pairs.input_BT, pairs.target_lengths_B)
    return seen


@contextmanager
def _watching(weights: ModelWeights, seen: dict[str, float]) -> Iterator[None]:
    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            values = inputs[0].abs().flatten()
            above = max(1, int(values.numel() * (1 - SHARE)))
            seen[name] = max(seen.get(name, 0.0), float(values.topk(above).values[-1]))

        return hook

    handles = [
        linear.module.register_forward_pre_hook(watch(linear.name)) for linear in weights.linears()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
