"""Compare training speed with that of a plain loop around ``torch.nn.Transformer``.

Both train the same sizes with the same dropout on the same padded batches, with fused Adam; the
plain loop uses PyTorch's own encoder-decoder with its fast attention, and PyTorch's cross entropy.
Both take turns, because the machine's speed drifts: the ratio is what counts.

    python benchmarks/learning/training_speed.py [--preset base] [--rounds 5] [--ablate] [--compile]

Ends with exit code 1 if ours is not at least 1.05 times as fast.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman_training.data.batch import Batch
from dragoman_training.data.batching import epoch_batches
from dragoman_training.data.token_store import TokenStore, TokenStoreWriter
from dragoman_training.data.tokenizer import PAD
from dragoman_training.models.dropout import Dropout
from dragoman_training.models.layout import Layout
from dragoman_training.models.positions import sinusoids
from dragoman_training.models.settings import PRESETS, TransformerSettings
from dragoman_training.models.transformer import Transformer
from dragoman_training.train.loss import TokenLoss
from dragoman_training.train.objective import Objective

MIN_RATIO = 1.05
"""Times that ours has to be as fast as the plain loop."""
SMOOTHING = 0.1


class PlainTransformer(nn.Module):
    """The plain loop's model: PyTorch's Transformer with tied embeddings and a summed loss."""

    positions: Tensor

    def __init__(self, settings: TransformerSettings, vocabulary: int) -> None:
        super().__init__()
        self.width = settings.width
        self.embedding = nn.Embedding(vocabulary, settings.width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=settings.width**-0.5)
        self.register_buffer("positions", sinusoids(settings.max_length, settings.width))
        self.dropout = nn.Dropout(settings.dropout)
        self.transformer = nn.Transformer(
            settings.width,
            settings.heads,
            settings.encoder_layers,
            settings.decoder_layers,
            settings.feed_forward,
            settings.dropout,
            batch_first=True,
        )

    def embed(self, ids: Tensor) -> Tensor:
        vectors = self.embedding(ids) * self.width**0.5
        return self.dropout(vectors + self.positions[: ids.shape[1]])

    def forward(self, batch: Batch) -> Tensor:
        source_padding = batch.source_BS == PAD
        causal = torch.ones(batch.input_BT.shape[1], batch.input_BT.shape[1]).triu(1).bool()
        hidden = self.transformer(
            self.embed(batch.source_BS),
            self.embed(batch.input_BT),
            tgt_mask=causal,
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=batch.input_BT == PAD,
            memory_key_padding_mask=source_padding,
            tgt_is_causal=True,
        )
        logits = F.linear(hidden, self.embedding.weight)
        return F.cross_entropy(
            logits.flatten(0, 1),
            batch.label_BT.flatten(),
            ignore_index=PAD,
            label_smoothing=SMOOTHING,
            reduction="sum",
        )


class WithoutPacking(Objective):
    """Our model, which computes padding like any token. Its loss is wrong; its time is measured."""

    def forward(self, batch: Batch) -> TokenLoss:
        full = Batch(
            batch.source_BS,
            torch.full_like(batch.source_lengths_B, batch.source_BS.shape[1]),
            batch.input_BT,
            batch.label_BT,
            torch.full_like(batch.target_lengths_B, batch.label_BT.shape[1]),
        )
        return super().forward(full)


class WithPlainLoss(nn.Module):
    """Our model with PyTorch's projection and cross entropy."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Tensor:
        model = self.model
        memory = model.encode(batch.source_BS, batch.source_lengths_B)
        layout = Layout.of(batch.target_lengths_B, batch.input_BT.shape[1])
        hidden_ND = model.decode(layout.pack(batch.input_BT), layout, memory)
        labels_N = layout.pack(batch.label_BT)
        logits_NV = model.projection(hidden_ND)
        return F.cross_entropy(logits_NV, labels_N, label_smoothing=SMOOTHING, reduction="sum")


class PlainDropout(nn.Dropout):
    """PyTorch's dropout, with the attribute in which our attention looks for the probability."""

    def __init__(self, probability: float) -> None:
        super().__init__(probability)
        self.probability = probability


def with_plain_dropout(objective: Objective) -> Objective:
    """Put PyTorch's dropout in place of ours."""
    for module in objective.modules():
        if isinstance(dropout := getattr(module, "dropout", None), Dropout):
            module.dropout = PlainDropout(dropout.probability)
    return objective


def make_batches(count: int, tokens: int, vocabulary: int) -> list[Batch]:
    """Return batches as training draws them, of sentences as long as those of everyday text."""
    rng = np.random.default_rng(1)
    sources = np.clip(np.exp(rng.normal(2.9, 0.5, 20_000)), 2, 100).astype(int)
    targets = np.clip(sources * rng.normal(1.05, 0.15, 20_000), 2, 100).astype(int)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store"
        with TokenStoreWriter(path, vocabulary) as writer:
            for lengths in zip(sources, targets, strict=True):
                source, target = (rng.integers(4, vocabulary, n).tolist() for n in lengths)
                writer.add(source, target)
        store = TokenStore(path)
        epoch = list(epoch_batches(store, 0, tokens=tokens, seed=1))[:count]
        return [Batch.of([store[int(i)] for i in batch], torch.device("cpu")) for batch in epoch]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    result = model(batch)
    loss = result if isinstance(result, Tensor) else result.smoothed
    (loss / batch.target_lengths_B.sum()).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def seconds(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Batch]) -> float:
    began = time.perf_counter()
    for batch in batches:
        step(model, optimizer, batch)
    return time.perf_counter() - began


def contenders(
    settings: TransformerSettings, vocabulary: int, *, compiled: bool, ablated: bool
) -> dict[str, nn.Module]:
    """Return the models that are timed, by name; the plain loop's comes first."""

    def transformer() -> Transformer:
        return Transformer(settings, source_vocabulary=vocabulary, target_vocabulary=vocabulary)

    models: dict[str, nn.Module] = {
        "plain torch.nn.Transformer": PlainTransformer(settings, vocabulary),
        "dragoman": Objective(transformer(), SMOOTHING),
    }
    if ablated:
        models["… computing padding"] = WithoutPacking(transformer(), SMOOTHING)
        models["… with PyTorch's loss"] = WithPlainLoss(transformer())
        plain_dropout = with_plain_dropout(Objective(transformer(), SMOOTHING))
        models["… with PyTorch's dropout"] = plain_dropout
    if compiled:
        model = transformer()
        models["… with compiled layers"] = Objective(model, SMOOTHING)
        for layer in [*model.encoder, *model.decoder]:
            layer.compile(dynamic=True)
    return models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--preset",
        default="base",
        choices=PRESETS,
        help="size of the models (default: %(default)s)",
    )
    parser.add_argument(
        "--vocabulary",
        type=int,
        default=16_000,
        help="tokens of the models' vocabulary (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-tokens",
        type=int,
        default=2048,
        help="most tokens of a batch, padding included (default: %(default)s)",
    )
    parser.add_argument(
        "--batches", type=int, default=6, help="batches of a round (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="rounds in which models take turns to be timed (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=os.cpu_count(),
        help="threads of PyTorch (default: the machine's cores, %(default)s)",
    )
    parser.add_argument(
        "--dropout",
        type=float,
        default=0.1,
        help="probability of every dropout (default: %(default)s)",
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="also measure our model with layers compiled by torch.compile",
    )
    parser.add_argument(
        "--ablate",
        action="store_true",
        help="also measure our model without packing, without its loss, without its dropout",
    )
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dropouts = ("dropout", "attention_dropout", "activation_dropout")
    settings = TransformerSettings(
        **{**PRESETS[arguments.preset], **dict.fromkeys(dropouts, arguments.dropout)}
    )
    batches = make_batches(arguments.batches, arguments.batch_tokens, arguments.vocabulary)
    tokens = sum(int(batch.target_lengths_B.sum()) for batch in batches)
    padded = sum(batch.source_BS.numel() + batch.label_BT.numel() for batch in batches)
    real = tokens + sum(int(batch.source_lengths_B.sum()) for batch in batches)
    torch.manual_seed(1)
    models = contenders(
        settings, arguments.vocabulary, compiled=arguments.compile, ablated=arguments.ablate
    )
    entries = {
        name: (model.train(), torch.optim.Adam(model.parameters(), lr=1e-4, fused=True))
        for name, model in models.items()
    }
    print(
        f"{platform.processor() or platform.machine()}, {arguments.threads} threads, torch "
        f"{torch.__version__}; {arguments.preset}, vocabulary {arguments.vocabulary}, "
        f"dropout {arguments.dropout}, {len(batches)} batches, {1 - real / padded:.1%} padding"
    )
    for model, optimizer in entries.values():
        seconds(model, optimizer, batches)
    rates: dict[str, list[float]] = {name: [] for name in entries}
    for _ in range(arguments.rounds):
        for name, (model, optimizer) in entries.items():
            rates[name].append(tokens / seconds(model, optimizer, batches))
    plain, *_ = rates
    figures = {}
    for name, values in rates.items():
        ratios = [rate / base for rate, base in zip(values, rates[plain], strict=True)]
        figures[name] = {
            "tokens_per_second": statistics.median(values),
            "ratio": statistics.median(ratios),
            "ratio_low": min(ratios),
            "ratio_high": max(ratios),
        }
        print(
            f"{name:30s} {figures[name]['tokens_per_second']:8.0f} target tokens/s   "
            f"{figures[name]['ratio']:.2f}×  ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    if arguments.json:
        arguments.json.write_text(
            json.dumps(
                {"arguments": vars(arguments) | {"json": None}, "figures": figures}, indent=2
            )
        )
    if figures["dragoman"]["ratio"] < MIN_RATIO:
        raise SystemExit(f"dragoman is not {MIN_RATIO} times as fast as the plain loop")


if __name__ == "__main__":
    main()
