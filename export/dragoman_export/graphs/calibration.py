"""How large the inputs of the model's products become, on sentences as it will see them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dragoman_export.graphs.weights import ModelWeights
from dragoman_training.data.batch import pad, pad_sources
from dragoman_training.models.layout import Layout
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
    translations: Sequence[Sequence[int]] | None = None,
) -> dict[str, float]:
    """Return the largest input of each product, by the product's name.

    It is found on the model's own greedy translations of the sources, which are searched for unless
    they are given.
    """
    model.eval()
    cpu = torch.device("cpu")
    seen: dict[str, float] = {}
    ordered = sorted((n for n in range(len(sources)) if sources[n]), key=lambda n: len(sources[n]))
    for at in range(0, len(ordered), _BATCH_SENTENCES):
        numbers = ordered[at : at + _BATCH_SENTENCES]
        batch = [sources[n] for n in numbers]
        source = pad_sources(batch, cpu, ends.end if ends.ends_source else None)
        if translations is None:
            limit = model.settings.max_length - len(ends.start)
            limits = [default_limit(len(source), limit) for source in batch]
            found = [each.ids for each in greedy_search(model, *source, limits, ends=ends)]
        else:
            found = [tuple(translations[n]) for n in numbers]
        inputs = [[ends.begin, *ends.start, *ids] for ids in found]
        layout = Layout.of(torch.tensor([len(line) for line in inputs]))
        with _watching(weights, seen):
            memory = model.encode(*source)
            vectors_ND = model.decode(layout.pack(pad(inputs)), layout, memory)
        # The projection itself would take longer than all the rest.
        _note(seen, weights.projection.name, vectors_ND)
    return seen


def _note(seen: dict[str, float], name: str, values: Tensor) -> None:
    """Keep how large the input of a product becomes."""
    above = max(1, int(values.numel() * (1 - SHARE)))
    flat = values.abs().flatten()
    larger = flat[flat > seen.get(name, 0.0)]  # to sort them all would take longer than the model
    if larger.numel() >= above:
        seen[name] = float(larger.topk(above).values[-1])


@contextmanager
def _watching(weights: ModelWeights, seen: dict[str, float]) -> Iterator[None]:
    """Keep in ``seen`` how large the inputs of products become."""

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            _note(seen, name, inputs[0])

        return hook

    handles = [
        linear.module.register_forward_pre_hook(watch(linear.name)) for linear in weights.linears()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
