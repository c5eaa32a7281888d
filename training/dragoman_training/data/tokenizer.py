"""Subwords with SentencePiece: from text to ids and back."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

import sentencepiece as spm

from dragoman_training.config.checks import above, at_least, at_most, literals
from dragoman_training.data.rules.placeholders import MAX_PLACEHOLDERS, placeholder
from dragoman_training.errors import CheckpointError, RecipeError

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
"""Ids of the special tokens, the same in every vocabulary we train."""

_JOINT, _SOURCE, _TARGET = "tokenizer.spm", "source.spm", "target.spm"


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings:
    kind: Literal["unigram", "bpe"] = "unigram"
    """How pieces are learnt: a unigram language model, or byte-pair encoding."""
    vocabulary: int = 8000
    """Entries, special tokens and the 256 bytes included; of each side if not joint."""
    joint: bool = True
    """One vocabulary for both languages, so that embeddings can be shared."""
    character_coverage: float = 1.0
    """Share of the characters seen that get an entry; the others are spelt in bytes."""
    required_characters: str = ""
    """Characters that get an entry however rare they are."""
    normalization: Literal["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity"] = "nmt_nfkc"
    """Unicode normalisation. ``identity`` also keeps white space as it is; ``_cf`` folds case."""
    sample: int = 1_000_000
    """Sentences of each side to learn from, spread evenly over the corpora by their weights."""
    split_digits: bool = False
    """Make each digit a piece of its own, so that numbers are spelt and not memorised."""
    placeholders: int = 0
    """How many of the pieces ⟨1⟩ … ⟨9⟩ the vocabulary has, which stand for text to be kept."""

    def __post_init__(self) -> None:
        literals(self)
        at_least(261, "vocabulary", self.vocabulary)  # special tokens, bytes, and one more
        at_least(1, "sample", self.sample)
        above(0, "character_coverage", self.character_coverage)
        at_most(1, "character_coverage", self.character_coverage)
        at_least(0, "placeholders", self.placeholders)
        at_most(MAX_PLACEHOLDERS, "placeholders", self.placeholders)


class Tokenizer:
    """One SentencePiece model."""

    def __init__(self, model: bytes, origin: str = "tokenizer") -> None:
        try:
            self._processor = spm.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise CheckpointError(f"{origin}: not a SentencePiece model ({error})") from None
        self.model = model

    @property
    def size(self) -> int:
        return int(self._processor.GetPieceSize())

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces, without begin and end."""
        ids: list[int] = self._processor.EncodeAsIds(text)
        return ids

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._processor.Encode(list(texts), out_type=int)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        text: str = self._processor.DecodeIds(list(ids))
        return text

    @property
    def placeholders(self) -> int:
        """How many placeholders the vocabulary has, numbered from 1 on."""
        numbers = range(1, MAX_PLACEHOLDERS + 1)
        known = (self._processor.PieceToId(placeholder(number)) != UNKNOWN for number in numbers)
        return sum(takewhile(bool, known))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces as the vocabulary spells them, ``▁`` for a space."""
        return [self._processor.IdToPiece(i) for i in ids]


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both sides; one and the same where the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        return self.source is self.target

    def files(self) -> dict[str, bytes]:
        """What to store, by file name."""
        if self.joint:
            return {_JOINT: self.source.model}
        return {_SOURCE: self.source.model, _TARGET: self.target.model}

    @classmethod
    def load(cls, directory: Path) -> "TokenizerPair":
        if (directory / _JOINT).exists():
            joint = _load(directory / _JOINT)
            return cls(joint, joint)
        return cls(_load(directory / _SOURCE), _load(directory / _TARGET))


def _load(path: Path) -> Tokenizer:
    try:
        return Tokenizer(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file") from None


def train_tokenizer(sentences: Iterable[str], settings: TokenizerSettings, seed: int) -> Tokenizer:
    """Learn a vocabulary. Raises ``RecipeError`` where the text is too small for its size."""
    spm.set_random_generator_seed(seed)
    keep_spaces = settings.normalization == "identity"
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.Train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=settings.kind,
            vocab_size=settings.vocabulary,
            character_coverage=settings.character_coverage,
            required_chars=settings.required_characters,
            normalization_rule_name=settings.normalization,
            remove_extra_whitespaces=not keep_spaces,
            byte_fallback=True,
            split_digits=settings.split_digits,
            user_defined_symbols=[placeholder(n + 1) for n in range(settings.placeholders)],
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BEGIN,
            eos_id=END,
            num_threads=1,  # the result of unigram training depends on the number of threads
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2].strip()  # after the line of its source
        raise RecipeError(
            f"tokenizer.vocabulary is {settings.vocabulary}: SentencePiece can't learn it from "
            f"this text. {reason}"
        ) from None
    return Tokenizer(model.getvalue())
