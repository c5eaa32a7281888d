"""How large the inputs of the model's products become, on sentences as it will see them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dragoman_export.graphs.weights import ModelWeights
from dragoman_training.data.batch import pad, pad_sources
from dragoman_training.models.transformer import Transformer
from dragoman_training.translate.search import OURS, Ends, default_limit, greedy_search

SHARE = 0.99999
"""Share of the values seen that the range covers; the few above it are clipped."""
_BATCH_SENTENCES = 32
"""Sentences that are translated at a time."""


@torch.inference_mode()
def largest_inputs(
    model: Transformer,
    weights: ModelWeights,
    sources: Sequence[Sequence[int]],
    ends: Ends = OURS,
) -> dict[str, float]:
    """Return the largest input of each product, by the product's name.

    It is found on the model's own greedy translations of the sources.
    """
    model.eval()
    cpu = torch.device("cpu")
    limit = model.settings.max_length - len(ends.start)
    seen: dict[str, float] = {}
    ordered = sorted((source for source in sources if source), key=len)
    for at in range(0, len(ordered), _BATCH_SENTENCES):
        batch = ordered[at : at + _BATCH_SENTENCES]
        limits = [default_limit(len(source), limit) for source in batch]
        source = pad_sources(batch, cpu, ends.end if ends.ends_source else None)
        found = greedy_search(model, *source, limits, ends=ends)
        inputs = [[ends.begin, *ends.start, *hypothesis.ids] for hypothesis in found]
        with _watching(weights, seen):
            model(*source, pad(inputs), torch.tensor([len(line) for line in inputs]))
    return seen


@contextmanager
def _watching(weights: ModelWeights, seen: dict[str, float]) -> Iterator[None]:
    """Keep in ``seen`` how large the inputs of products become."""

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
