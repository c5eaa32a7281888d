"""What preparation left on disk, as a run reads it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_training.data.groups import load_groups
from dragoman_training.data.mixture import Mixture
from dragoman_training.data.text.corpus import read_lines
from dragoman_training.data.token_store import TokenStore
from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.train.checkpoint import Checkpoint

META = "prepared.json"
"""The file that says what was prepared, from what, and what became of it."""
INITIAL = "initial"
"""The directory of the weights that training begins with, where these are not random."""


@dataclass(frozen=True)
class PreparedValidation:
    """One validation text, as tokens and as text."""

    name: str
    store: TokenStore
    sources: list[str]
    targets: list[str]


@dataclass(frozen=True)
class PreparedData:
    """What ``prepare`` left on disk."""

    train: TokenStore
    mixture: Mixture | None
    """How often each pair is drawn; None where every pair is drawn once in each epoch."""
    valid: tuple[PreparedValidation, ...]
    tokenizers: TokenizerPair
    initial: Checkpoint | None
    """What training begins with, where that is not random weights."""
    provenance: dict[str, Any]
    """The files read, with their hashes, and the reports of the filters."""


def load_prepared(directory: Path) -> PreparedData:
    meta = json.loads((directory / META).read_text())
    groups = load_groups(directory / "groups")
    all_once = len(groups) == 1 and groups[0].weight == 1 and groups[0].joinable
    return PreparedData(
        train=TokenStore(directory / "train"),
        mixture=None if all_once else Mixture(groups, meta["settings"]["seed"]),
        valid=tuple(_load_valid(directory / "valid" / name) for name in meta["valid"]),
        tokenizers=TokenizerPair.load(directory),
        initial=Checkpoint.load(directory / INITIAL) if "initial" in meta else None,
        provenance={
            key: meta[key]
            for key in ("files", "report", "corpora", "valid_too_long", "initial")
            if key in meta
        },
    )


def _load_valid(directory: Path) -> PreparedValidation:
    return PreparedValidation(
        name=directory.name,
        store=TokenStore(directory / "tokens"),
        sources=list(read_lines(directory / "source")),
        targets=list(read_lines(directory / "target")),
    )
