"""Measure how the memory of training grows on batches of varied shapes.

    ONEDNN_PRIMITIVE_CACHE_CAPACITY=128 python benchmarks/learning/training_memory.py --steps 160

Prints, every 40 steps: the step, anonymous memory now and at its peak in MiB, and processor seconds
a step. Decision 11 (docs/decisions/011-memory-of-training.md) has the figures.
"""

import argparse
import ctypes
import sys
import time
from pathlib import Path

import numpy as np
import torch

from dragoman_training.data.batch import Batch
from dragoman_training.data.token_store import TokenPair
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Transformer
from dragoman_training.train.objective import Objective

_MMAP_THRESHOLD = -3
"""The number of glibc's ``mallopt`` for ``M_MMAP_THRESHOLD``."""


def main() -> None:
    options = _options()
    libc = ctypes.CDLL(None)
    if options.mmap_threshold:
        libc.mallopt(_MMAP_THRESHOLD, options.mmap_threshold)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = TransformerSettings(
        width=options.width,
        heads=4,
        feed_forward=4 * options.width,
        encoder_layers=options.layers,
        decoder_layers=2,
        dropout=0.0,
        norm="pre",
    )
    sizes = {f"{side}_vocabulary": options.vocabulary for side in ("source", "target")}
    model = Transformer(settings, **sizes)
    dtype = None if options.float32 else torch.bfloat16
    objective = Objective(model, 0.0, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rng = np.random.default_rng(1)
    highest = 0.0
    for step in range(1, options.steps + 1):
        batch = _batch(rng, options)
        (objective(batch).smoothed / options.tokens).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if options.trim and step % options.trim == 0:
            libc.malloc_trim(0)
        now = _anonymous_megabytes()
        highest = max(highest, now)
        if step == 2 or step % 40 == 0:
            seconds = time.process_time() / step
            sys.stdout.write(f"{step:5} {now:6.0f} {highest:6.0f} {seconds:.3f}\n")
            sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--steps", type=int, default=160, help="training steps (default: %(default)s)"
    )
    parser.add_argument(
        "--float32", action="store_true", help="compute in float32 instead of bfloat16"
    )
    parser.add_argument(
        "--one-shape", action="store_true", help="give all sentences of all batches one length"
    )
    parser.add_argument(
        "--width", type=int, default=128, help="width of the model (default: %(default)s)"
    )
    parser.add_argument(
        "--layers", type=int, default=3, help="encoder layers of the model (default: %(default)s)"
    )
    parser.add_argument(
        "--vocabulary",
        type=int,
        default=2000,
        help="tokens of the model's vocabulary (default: %(default)s)",
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=3072,
        help="tokens of a batch, on each side (default: %(default)s)",
    )
    parser.add_argument(
        "--longest",
        type=int,
        default=100,
        help="most tokens of a sentence (default: %(default)s)",
    )
    parser.add_argument(
        "--trim",
        type=int,
        default=0,
        help="steps between calls of malloc_trim; 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--mmap-threshold",
        type=int,
        default=0,
        help="glibc's M_MMAP_THRESHOLD in bytes; 0 for glibc's own (default: %(default)s)",
    )
    return parser.parse_args()


def _batch(rng: np.random.Generator, options: argparse.Namespace) -> Batch:
    longest = options.longest // 2 if options.one_shape else int(rng.integers(4, options.longest))
    shorter = 1 if options.one_shape else 4
    pairs = [
        TokenPair(
            *(
                rng.integers(4, options.vocabulary, longest - int(rng.integers(0, shorter)))
                for _ in range(2)
            )
        )
        for _ in range(options.tokens // longest)
    ]
    return Batch.of(pairs, torch.device("cpu"))


def _anonymous_megabytes() -> float:
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the system does not say how much memory this process has")


if __name__ == "__main__":
    main()
