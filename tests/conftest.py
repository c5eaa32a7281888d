"""What tests in several folders use, and how all of them run."""

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Some virtual machines announce AMX but stop the process that uses it, as oneDNN does for bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
import torch
from hypothesis import settings

from support import MODEL

if TYPE_CHECKING:
    from support.service_running import Running

# Tests run in parallel, one a core; what they start must not want both cores either.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

# What servers of tests leave in the user's cache directory is not the user's.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="dragoman-cache-")

# Shared machines are too uneven for a time limit per example.
settings.register_profile("dragoman", deadline=None)
settings.load_profile("dragoman")


@pytest.fixture
def parallel_text(tmp_path: Path) -> tuple[Path, Path]:
    """A few hundred made-up sentence pairs in two files."""
    rng = random.Random(7)
    syllables = ["ca", "sa", "li", "vro", "gua", "so", "mar", "pão", "rua", "noi", "te", "flor"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(60)]
    source, target = tmp_path / "text.en", tmp_path / "text.pt"
    with source.open("w") as left, target.open("w") as right:
        for _ in range(300):
            sentence = rng.choices(words, k=rng.randint(2, 8))
            left.write(" ".join(sentence) + "\n")
            right.write(" ".join(word.upper() for word in reversed(sentence)) + "\n")
    return source, target


@pytest.fixture(scope="module")
def running() -> "Iterator[Running]":
    """A server of the default model, for the tests of a module."""
    # Most tests need no server: they do without its imports.
    from support.service_running import serving, settings_for

    with serving(settings_for(MODEL)) as running:
        yield running
