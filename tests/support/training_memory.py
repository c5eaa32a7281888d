"""Trains on text of varied lengths and prints how much memory it has: a step and bytes a line.

Run by ``test_training_memory.py`` in a process of its own, because memory is that of a process.
"""

import random
import sys
from pathlib import Path

import torch

from dragoman_training.config.recipe import recipe_from_dict
from dragoman_training.report.records import Observer, StepRecord
from dragoman_training.train.run import train

MAX_WORDS = 60


def write_text(path: Path) -> None:
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(1, 4))) for _ in range(300)]
    with path.open("w") as file:
        for _ in range(4000):
            count = rng.randint(1, MAX_WORDS)
            sides = (rng.choices(words, k=max(1, count + rng.randint(-2, 2))) for _ in range(2))
            file.write("\t".join(" ".join(side) for side in sides) + "\n")


def anonymous_bytes() -> int:
    """What the process itself has allocated and touched; files that it has mapped do not count."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("the system does not say")


class Watch(Observer):
    def stepped(self, step: int, record: StepRecord | None) -> None:
        sys.stdout.write(f"{step} {anonymous_bytes()}\n")


def main() -> None:
    directory, steps = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    write_text(directory / "text.tsv")
    recipe = recipe_from_dict(
        {
            "data": {
                "source_language": "en",
                "target_language": "pt",
                "train_source": [str(directory / "text.tsv")],
                "max_tokens": 128,
            },
            "tokenizer": {"vocabulary": 500},
            "model": {
                "width": 32,
                "heads": 2,
                "feed_forward": 128,
                "encoder_layers": 1,
                "decoder_layers": 1,
                "dropout": 0.0,
            },
            "training": {"batch_tokens": 512, "max_steps": steps, "precision": "bfloat16"},
            "checkpoints": {"every": steps},
        }
    )
    train(recipe, directory / "run", Watch())


if __name__ == "__main__":
    main()
