"""The range that the inputs of the model's products have, on sentences as it will see them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from dragoman_export.graphs.weights import ModelWeights
from dragoman_training.data.batch import pad, pad_sources
from dragoman_training.data.tokenizer import OURS, Ends
from dragoman_training.models.layout import Layout
from dragoman_training.models.transformer import Transformer
from dragoman_training.translate.search import default_limit, greedy_search

SHARE = 0.99999
"""Share of the values seen that the range covers; the few above it are clipped."""
_BATCH_SENTENCES = 32
"""Sentences that are translated at a time."""


@dataclass(frozen=True)
class InputRanges:
    """The range of the inputs of each product, by the product's name."""

    highest: dict[str, float] = field(default_factory=dict)
    """Largest input of each product, at least 0."""
    lowest: dict[str, float] = field(default_factory=dict)
    """Smallest input of each product, at most 0."""

    def note(self, name: str, values: Tensor) -> None:
        """Widen the range of a product to these inputs, but for the few beyond ``SHARE``."""
        beyond = max(1, int(values.numel() * (1 - SHARE)))
        highest, lowest = self.highest.setdefault(name, 0.0), self.lowest.setdefault(name, 0.0)
        # Only what is beyond the range so far: to sort all would take longer than the model.
        above, below = values[values > highest], values[values < lowest]
        if above.numel() >= beyond:
            self.highest[name] = float(above.topk(beyond).values[-1])
        if below.numel() >= beyond:
            self.lowest[name] = float(below.topk(beyond, largest=False).values[-1])


@torch.inference_mode()
def input_ranges(
    model: Transformer,
    weights: ModelWeights,
    sources: Sequence[Sequence[int]],
    ends: Ends = OURS,
    translations: Sequence[Sequence[int]] | None = None,
) -> InputRanges:
    """Return the range of the inputs of each product.

    It is found on the model's own greedy translations of the sources, which are searched for unless
    they are given.
    """
    model.eval()
    cpu = torch.device("cpu")
    seen = InputRanges()
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
        seen.note(weights.projection.name, vectors_ND)
    return seen


@contextmanager
def _watching(weights: ModelWeights, seen: InputRanges) -> Iterator[None]:
    """Note the inputs of products."""

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            seen.note(name, inputs[0])

        return hook

    handles = [
        linear.module.register_forward_pre_hook(watch(linear.name)) for linear in weights.linears()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
