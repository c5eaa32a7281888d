"""Subwords with SentencePiece: from text to ids and back.

A model from elsewhere brings its own: special tokens with other ids, tokens of languages, and
often a table that says which id each piece has. All of it is kept in the files of a checkpoint, so
that what is trained of such a model has the same vocabulary.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import sentencepiece as spm

from dragoman_training.config.checks import above, at_least, at_most, literals
from dragoman_training.data.rules.placeholders import MAX_PLACEHOLDERS, placeholder
from dragoman_training.errors import CheckpointError, RecipeError

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
"""Ids of the special tokens, the same in every vocabulary we train."""

_JOINT, _SOURCE, _TARGET = "tokenizer.spm", "source.spm", "target.spm"
_FOREIGN, _SHORTLIST = "foreign.json", "shortlist.npz"
_KINDS = ("tokenizer", "vocabulary")
"""Files of each side: the SentencePiece model, and a table of ids."""


@dataclass(frozen=True)
class Ends:
    """The tokens around a sentence and its translation."""

    begin: int = BEGIN
    """Token that decoding begins with."""
    end: int = END
    """Token that ends a translation."""
    ends_source: bool = True
    """Whether a source ends with the end token too."""
    start: tuple[int, ...] = ()
    """Tokens that follow the begin token, such as that of a language. They are no part of the
    translation and cost nothing."""
    before: tuple[int, ...] = ()
    """Tokens that a source begins with, such as those of languages."""
    in_beam: bool = False
    """Whether a beam search ends a hypothesis only if its end is among the best of the beam."""

    @property
    def most_around(self) -> int:
        """Tokens that a source or a target has beside its text and its end."""
        return max(len(self.start), len(self.before))


OURS = Ends()


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
        known = (self._processor.PieceToId(placeholder(n)) != self.unknown for n in numbers)
        return sum(takewhile(bool, known))

    @property
    def unknown(self) -> int:
        """The token for what the vocabulary can't spell."""
        return int(self._processor.unk_id())

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces as the vocabulary spells them, ``▁`` for a space."""
        return [self._processor.IdToPiece(i) for i in ids]


class MappedTokenizer(Tokenizer):
    """A SentencePiece model with a table of ids, as models from elsewhere have it.

    The table is a file of a bundle: ``{"unknown": 1, "hidden": [0], "pieces": {"▁the": 2, …}}``.
    """

    def __init__(self, model: bytes, table: bytes, size: int, origin: str = "tokenizer") -> None:
        super().__init__(model, origin)
        self.table = table
        self._size = size
        try:
            told = json.loads(table)
            self._ids: dict[str, int] = told["pieces"]
            self._hidden = frozenset(told["hidden"])
            self._unknown = int(told["unknown"])
            self._names = {token: piece for piece, token in self._ids.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{origin}: not a table of ids ({error})") from None

    @property
    def size(self) -> int:
        return self._size

    @property
    def unknown(self) -> int:
        return self._unknown

    @property
    def placeholders(self) -> int:
        return 0

    def encode(self, text: str) -> list[int]:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        lines: list[list[str]] = self._processor.Encode(list(texts), out_type=str)
        return [[self._ids.get(piece, self._unknown) for piece in line] for line in lines]

    def decode(self, ids: Iterable[int]) -> str:
        known = (i for i in ids if i in self._names and i not in self._hidden)
        text: str = self._processor.DecodePieces([self._names[i] for i in known])
        return text.replace("▁", " ")

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._names.get(i, "<unk>") for i in ids]


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both sides; one and the same where the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer
    ends: Ends = OURS
    """The special tokens around sentences."""
    pad: int = PAD
    """A token to fill up batches with, which nothing looks at."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Of a model from elsewhere: what a bundle says of its vocabularies and languages. Training
    looks at the names of files alone."""
    shortlist: bytes = b""
    """The file of the shortlist that a bundle came with, for the next bundle."""

    @property
    def joint(self) -> bool:
        return self.source is self.target

    def files(self) -> dict[str, bytes]:
        """What to store, by file name."""
        files = {_SHORTLIST: self.shortlist} if self.shortlist else {}
        for side, tokenizer in (("source", self.source), ("target", self.target)):
            files[self.names[f"{side}_tokenizer"]] = tokenizer.model
            if isinstance(tokenizer, MappedTokenizer):
                files[self.names[f"{side}_vocabulary"]] = tokenizer.table
        if not self.manifest:
            return files
        told = {
            "ends": asdict(self.ends),
            "pad": self.pad,
            "sizes": [self.source.size, self.target.size],
            "manifest": dict(self.manifest),
        }
        text = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
        return {**files, _FOREIGN: text.encode()}

    @property
    def names(self) -> dict[str, str]:
        """The names of the files of vocabularies, by the keys that a bundle's manifest has."""
        if not self.manifest:
            one, other = (_JOINT, _JOINT) if self.joint else (_SOURCE, _TARGET)
            return {"source_tokenizer": one, "target_tokenizer": other}
        keys = (f"{side}_{what}" for side in ("source", "target") for what in _KINDS)
        return {key: self.manifest[key] for key in keys if self.manifest.get(key)}

    @classmethod
    def load(cls, directory: Path) -> "TokenizerPair":
        shortlist = directory / _SHORTLIST
        kept = shortlist.read_bytes() if shortlist.exists() else b""
        if (directory / _FOREIGN).exists():
            return _load_foreign(directory, kept)
        if (directory / _JOINT).exists():
            joint = _load(directory / _JOINT)
            return cls(joint, joint, shortlist=kept)
        return cls(_load(directory / _SOURCE), _load(directory / _TARGET), shortlist=kept)


def foreign_pair(
    files: Mapping[str, bytes],
    sizes: Sequence[int],
    ends: Ends,
    pad: int,
    manifest: Mapping[str, Any],
    shortlist: bytes = b"",
) -> TokenizerPair:
    """Return the tokenizers of a model from elsewhere, out of the files that its manifest names."""
    made: dict[tuple[str, str], Tokenizer] = {}
    for side, size in zip(("source", "target"), sizes, strict=True):
        model, table = manifest[f"{side}_tokenizer"], manifest.get(f"{side}_vocabulary") or ""
        if (model, table) not in made:
            made[model, table] = (
                MappedTokenizer(files[model], files[table], size, table)
                if table
                else Tokenizer(files[model], model)
            )
    pair = list(made.values())
    return TokenizerPair(pair[0], pair[-1], ends, pad, manifest, shortlist)


def _load_foreign(directory: Path, shortlist: bytes) -> TokenizerPair:
    path = directory / _FOREIGN
    try:
        told = json.loads(path.read_bytes())
        ends = Ends(**{**told["ends"], **{k: tuple(told["ends"][k]) for k in ("start", "before")}})
        keys = [f"{side}_{what}" for side in ("source", "target") for what in _KINDS]
        names = {told["manifest"].get(key) or "" for key in keys} - {""}
        files = {name: (directory / name).read_bytes() for name in names}
        return foreign_pair(files, told["sizes"], ends, told["pad"], told["manifest"], shortlist)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: not as it was written ({error})") from None


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
