"""Calls of CTranslate2 with our ids and options. Does without PyTorch, as its server needs none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from dragoman_training.data.tokenizer import BEGIN, END, PAD, UNKNOWN

_MAX_TOKENS = 256
"""Most tokens of a translation whose length is not forced."""
_END = "</s>"


def tokens(vocabulary: int) -> list[str]:
    """Return a name for each id of a vocabulary, as CTranslate2 takes names of tokens."""
    special = {PAD: "<blank>", UNKNOWN: "<unk>", BEGIN: "<s>", END: "</s>"}
    return [special.get(i, f"t{i}") for i in range(vocabulary)]


def load(directory: Path, compute_type: str, workers: int, threads: int) -> ctranslate2.Translator:
    """Load a model for so many workers, with so many threads each."""
    return ctranslate2.Translator(
        str(directory),
        device="cpu",
        compute_type=compute_type,
        inter_threads=workers,
        intra_threads=threads,
    )


def decoding_options(forced: int | None, beam: int) -> dict[str, Any]:
    """Return CTranslate2's options for a beam size and a forced length in tokens."""
    longest = _MAX_TOKENS if forced is None else forced
    return {
        "beam_size": beam,
        "min_decoding_length": 1 if forced is None else forced,
        "max_decoding_length": longest,
        "max_input_length": 0,
    }


def named(ids: Sequence[int], tokens: Sequence[str]) -> list[str]:
    """Return the names of a source's tokens, with the end token."""
    return [*(tokens[token] for token in ids), _END]


def ids_of(tokens: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of named tokens; -1 for special ones."""
    return tuple(int(token[1:]) if token[0] == "t" else -1 for token in tokens)
