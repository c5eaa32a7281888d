"""Calls of CTranslate2 with our ids and options. Without PyTorch: a server of it needs none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from dragoman_training.data.tokenizer import BEGIN, END, PAD, UNKNOWN

_LONGEST = 256
_END = "</s>"


def tokens(vocabulary: int) -> list[str]:
    """Names for the ids of a vocabulary, since CTranslate2 speaks of tokens."""
    special = {PAD: "<blank>", UNKNOWN: "<unk>", BEGIN: "<s>", END: "</s>"}
    return [special.get(i, f"t{i}") for i in range(vocabulary)]


def load(directory: Path, compute_type: str, workers: int, threads: int) -> ctranslate2.Translator:
    return ctranslate2.Translator(
        str(directory),
        device="cpu",
        compute_type=compute_type,
        inter_threads=workers,
        intra_threads=threads,
    )


def decoding_options(forced: int | None, beam: int) -> dict[str, Any]:
    """Of CTranslate2, for what our options mean."""
    longest = _LONGEST if forced is None else forced
    return {
        "beam_size": beam,
        "min_decoding_length": 1 if forced is None else forced,
        "max_decoding_length": longest,
        "max_input_length": 0,
    }


def named(ids: Sequence[int], tokens: Sequence[str]) -> list[str]:
    return [*(tokens[token] for token in ids), _END]


def ids_of(tokens: Sequence[str]) -> tuple[int, ...]:
    return tuple(int(token[1:]) if token[0] == "t" else -1 for token in tokens)
