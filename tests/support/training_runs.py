"""Whole training runs through the real command."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.command import Ended, dragoman

RECIPE = """
seed = 3

[toy]
train = 600
valid = 30
test = 10

[tokenizer]
vocabulary = 300

[model]
preset = "tiny"
width = 32
encoder_layers = 1
decoder_layers = 1
dropout = 0.1
activation_dropout = 0.1
max_length = 32

[data]
max_tokens = 32

[training]
max_steps = 30
batch_tokens = 256
accumulate = 2
warmup_steps = 10
log_every = 1

[validation]
every = 10
sentences = 10

[checkpoints]
every = 4
keep = 3
average = 3
"""


STAGES = {
    *(f"{stage} {corpus} …" for stage in ("reading", "tokenizing") for corpus in ("train", "toy")),
    "learning the vocabulary …",
}


def one_line(result: Ended, exit_code: int = 2) -> str:
    """The only line that a failed run prints, apart from the stages it went through."""
    code, stdout, stderr = result
    assert (code, stdout) == (exit_code, "")
    (line,) = (line for line in stderr.splitlines() if line not in STAGES)
    assert line.startswith("dragoman: ")
    return line.removeprefix("dragoman: ")


def train(recipe: Path, output: Path, *settings: str) -> Ended:
    sets = [part for setting in settings for part in ("--set", setting)]
    return dragoman("train", recipe, "--output", output, *sets)


def metrics(run: Path) -> list[dict[str, Any]]:
    path = run / "metrics.jsonl"
    *lines, _ = path.read_text().split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines]


def losses(run: Path) -> list[float]:
    return [record["loss"] for record in metrics(run) if record["kind"] == "step"]


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> bool:
    """True when the condition holds, False when the process ended first."""
    while process.poll() is None:
        if condition():
            return True
        time.sleep(0.001)
    return condition()


def weights(run: Path) -> bytes:
    return (run / "final" / "model.safetensors").read_bytes()
