"""A bundle's manifest: all that a bundle says about itself, as dataclasses and as JSON."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from dragoman_server.bundle.graph_io import (
    ATTENTION,
    DECODERS,
    GRAPHS,
    SHORTLIST_GRAPHS,
    RowCache,
    row_caches,
)
from dragoman_server.bundle.tables import check_within, from_table

FORMAT = 1
_MAX_SIZE = 1 << 24
"""Largest size that a manifest may state. One that states a larger size is wrong or means harm."""
MANIFEST, WEIGHTS = "manifest.json", "weights.bin"
SHORTLIST = "shortlist.npz"
MAX_PLACEHOLDERS = 9
"""Most placeholders, ⟨1⟩ … ⟨9⟩, that a vocabulary may have."""
PRECISIONS = ("float32", "int8", "float16")
_OPTIONAL: dict[str, Any] = {
    "source_vocabulary": "",
    "target_vocabulary": "",
    "source_languages": {},
    "target_languages": {},
    "target_language_in": "",
    "source_without_end": False,
    "ends_in_beam": False,
    "shortlist": "",
    "placeholders": 0,
    "decoder": ATTENTION,
}
"""Keys that a manifest leaves out where they say no more than this, so that older readers still
know all."""


@dataclass(frozen=True, kw_only=True)
class Dimensions:
    """The sizes of a model."""

    width: int
    """Width of the vectors between layers."""
    heads: int
    """Attention heads of each layer."""
    feed_forward: int
    """Width inside the feed-forward networks."""
    encoder_layers: int
    """Layers of the encoder."""
    decoder_layers: int
    """Layers of the decoder."""
    source_vocabulary: int
    """Tokens of the source vocabulary."""
    target_vocabulary: int
    """Tokens of the target vocabulary."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_within(1, _MAX_SIZE, name, value)
        if self.width % self.heads:
            raise ValueError(f"width is {self.width}, which is no multiple of heads, {self.heads}")

    @property
    def head_width(self) -> int:
        """Width of the keys, values and queries of one attention head."""
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    """The ids of the tokens that are no text."""

    pad: int
    """Token that fills up shorter sentences of a batch."""
    unknown: int
    """Token for what the vocabulary can't spell."""
    begin: int
    """Token that decoding begins with. In models from elsewhere it may be ``pad`` or ``end``."""
    end: int
    """Token that ends a sentence."""


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """What a manifest says of one file of its bundle."""

    bytes: int
    """Size of the file, in bytes."""
    sha256: str
    """SHA-256 of the file's content, in hexadecimal."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says about itself."""

    format: int = FORMAT
    """Version of the bundle's format."""
    name: str
    """Name of the model, by which clients ask for it."""
    version: str
    """Version of the model."""
    source_language: str
    """Tag of the language that the model translates from; ``mul`` for several."""
    target_language: str
    """Tag of the language that the model translates into; ``mul`` for several."""
    precision: str
    """Precision of the graphs: ``float32``, ``int8`` or ``float16``."""
    dimensions: Dimensions
    """Sizes of the model."""
    max_source_tokens: int
    """Most tokens of a source, its end token included: the capacity of the cross caches."""
    max_target_tokens: int
    """Most tokens of a translation, its end token included: the capacity of the self caches."""
    special_ids: SpecialIds
    """Ids of the tokens that are no text."""
    source_tokenizer: str
    """File with the SentencePiece model of the source."""
    target_tokenizer: str
    """File with the SentencePiece model of the target."""
    source_vocabulary: str = ""
    """File with the ids of the source's pieces, if they are not the SentencePiece model's own."""
    target_vocabulary: str = ""
    """File with the ids of the target's pieces, if they are not the SentencePiece model's own."""
    source_languages: dict[str, int | None] = field(default_factory=dict)
    """Tags of the source languages of a model that has several, each with the token that a source
    begins with, or None if it begins with none."""
    target_languages: dict[str, int] = field(default_factory=dict)
    """Tags of the target languages of a model that has several, each with the token that tells the
    model to translate into it."""
    target_language_in: str = ""
    """Place of the target language's token: ``source`` if it stands before the source, ``target``
    if it follows the begin token."""
    source_without_end: bool = False
    """Whether a source has no end token, as in models of OpenNMT-py."""
    ends_in_beam: bool = False
    """Whether a beam search ends a hypothesis only if its end is among the best ``beam``
    continuations, as transformers, fairseq and CTranslate2 do. Otherwise it may be among all that
    are looked at, twice as many."""
    shortlist: str = ""
    """File with the target tokens that are likely for each source token, if the bundle has a
    shortlist."""
    placeholders: int = 0
    """Number of placeholders, ⟨1⟩ … ⟨9⟩, that the model copies to their place in a translation."""
    decoder: str = ATTENTION
    """What a decoder layer looks back with: ``attention``, or ``ssru`` for the recurrent cell of
    Kim et al. (2019), which has a state of one vector and no cache of keys and values."""
    alignment_layer: int
    """Decoder layer, counted from 0, whose cross-attention is taken for the alignment."""
    licence: str
    """Licence of the model, as an SPDX identifier."""
    quality: dict[str, Any] = field(default_factory=dict)
    """What was measured when the bundle was made: see ``dragoman_export.proofs.quality``."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """What the model was made from: the recipe and its data, or where it was imported from."""
    made_with: dict[str, str] = field(default_factory=dict)
    """Versions of the packages that wrote the bundle."""
    files: dict[str, StoredFile] = field(default_factory=dict)
    """Size and hash of every file of the bundle but the manifest, by the file's name."""

    def __post_init__(self) -> None:
        vocabulary = min(self.dimensions.source_vocabulary, self.dimensions.target_vocabulary)
        ids = vars(self.special_ids)
        for name, value in ids.items():
            check_within(0, vocabulary - 1, name, value)
        if len({value for name, value in ids.items() if name != "begin"}) < len(ids) - 1:
            raise ValueError(f"special ids are not different: {ids}")
        for name in ("source_without_end", "ends_in_beam"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}")
        self._check_languages()
        check_within(0, self.dimensions.decoder_layers - 1, "alignment_layer", self.alignment_layer)
        for name in ("max_source_tokens", "max_target_tokens"):
            check_within(1, _MAX_SIZE, name, getattr(self, name))
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision {self.precision!r} is not known")
        if self.decoder not in DECODERS:
            raise ValueError(f"decoder {self.decoder!r} is not known")
        check_within(0, MAX_PLACEHOLDERS, "placeholders", self.placeholders)
        if self.shortlist and self.precision != "int8":
            raise ValueError(f"a shortlist is for int8, not {self.precision}")
        for name in ("quality", "provenance", "made_with"):
            if not isinstance(getattr(self, name), dict):
                raise ValueError(f"{name} is not a table")

    def _check_languages(self) -> None:
        sizes = self.dimensions
        in_target = self.target_language_in == "target"
        for name, vocabulary in (
            ("source_languages", sizes.source_vocabulary),
            ("target_languages", sizes.target_vocabulary if in_target else sizes.source_vocabulary),
        ):
            table = getattr(self, name)
            if not isinstance(table, dict):
                raise ValueError(f"{name} is not a table")
            for language, token in table.items():
                if token is not None or name == "target_languages":
                    if type(token) is not int:
                        raise ValueError(f"the token of {language} is {token!r}")
                    check_within(0, vocabulary - 1, f"the token of {language}", token)
        places = ("source", "target") if self.target_languages else ("",)
        if self.target_language_in not in places:
            raise ValueError(f"target_language_in is {self.target_language_in!r}")

    @property
    def source_end(self) -> tuple[int, ...]:
        """What follows the tokens of every source: the end token, or nothing."""
        return () if self.source_without_end else (self.special_ids.end,)

    @property
    def graphs(self) -> tuple[str, ...]:
        """Files of all graphs of the bundle."""
        return (*GRAPHS, *SHORTLIST_GRAPHS) if self.shortlist else GRAPHS

    @property
    def row_caches(self) -> dict[str, RowCache]:
        """What one row has in each cache, by the cache's name."""
        return row_caches(
            decoder=self.decoder,
            layers=self.dimensions.decoder_layers,
            heads=self.dimensions.heads,
            head_width=self.dimensions.head_width,
            max_source=self.max_source_tokens,
            max_target=self.max_target_tokens,
            element="float16" if self.precision == "float16" else "float32",
        )

    @property
    def cache_bytes_per_row(self) -> int:
        """Memory that the caches of one row take, in bytes."""
        return sum(cache.bytes for cache in self.row_caches.values())

    def to_json(self) -> str:
        """Return the manifest as its file has it."""
        table = {
            key: value
            for key, value in asdict(self).items()
            if key not in _OPTIONAL or value != _OPTIONAL[key]
        }
        return json.dumps(table, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Read a manifest's file.

        Raises ``ValueError`` if a key is missing, unknown, or of another type.
        """
        table = json.loads(text)
        if not isinstance(table, dict) or "format" not in table:
            raise ValueError("not a manifest")
        if table["format"] != FORMAT:
            raise ValueError(f"format {table['format']!r}, but this version reads format {FORMAT}")
        if not isinstance(table.get("files", {}), dict):
            raise ValueError("files is not a table")
        inner = {
            "dimensions": from_table(Dimensions, table.get("dimensions")),
            "special_ids": from_table(SpecialIds, table.get("special_ids")),
            "files": {
                str(name): from_table(StoredFile, stored)
                for name, stored in table.get("files", {}).items()
            },
        }
        return from_table(cls, {**table, **inner})
