"""A bundle's manifest: all that a bundle says about itself, as dataclasses and as JSON."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from dragoman_server.bundle.graph_io import GRAPHS, SHORTLIST_GRAPHS
from dragoman_server.bundle.tables import check_within, from_table

FORMAT = 1
_MAX_SIZE = 1 << 24
"""No size of a model is larger; a manifest that says so is wrong or means harm."""
MANIFEST, WEIGHTS = "manifest.json", "weights.bin"
SHORTLIST = "shortlist.npz"
MAX_PLACEHOLDERS = 9
PRECISIONS = ("float32", "int8", "float16")
_OPTIONAL = (
    "source_vocabulary",
    "target_vocabulary",
    "source_languages",
    "target_languages",
    "target_language_in",
    "ends_in_beam",
    "shortlist",
    "placeholders",
)
"""Keys that a manifest leaves out where they say nothing, so that older readers still know all."""


@dataclass(frozen=True, kw_only=True)
class Dimensions:
    width: int
    heads: int
    feed_forward: int
    encoder_layers: int
    decoder_layers: int
    source_vocabulary: int
    target_vocabulary: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_within(1, _MAX_SIZE, name, value)
        if self.width % self.heads:
            raise ValueError(f"width is {self.width}, which is no multiple of heads, {self.heads}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    pad: int
    unknown: int
    begin: int
    """What a translation is begun with. In models from elsewhere that may be ``pad`` or ``end``."""
    end: int


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says about itself."""

    format: int = FORMAT
    name: str
    version: str
    source_language: str
    target_language: str
    precision: str
    dimensions: Dimensions
    max_source_tokens: int
    """End token included; the capacity of the cross caches."""
    max_target_tokens: int
    """End token included; the capacity of the self caches."""
    special_ids: SpecialIds
    source_tokenizer: str
    target_tokenizer: str
    source_vocabulary: str = ""
    """File with the ids of pieces, where they are not the SentencePiece model's own."""
    target_vocabulary: str = ""
    source_languages: dict[str, int | None] = field(default_factory=dict)
    """Of a model of several: the language tags, and the token that a source in each begins with,
    where there is one."""
    target_languages: dict[str, int] = field(default_factory=dict)
    """The same for the language to translate into."""
    target_language_in: str = ""
    """Where that token stands: ``source``, before the text, or ``target``, after the begin token.
    """
    ends_in_beam: bool = False
    """In a beam search, a hypothesis ends only where that is among the best ``beam`` continuations:
    the search of transformers, fairseq and CTranslate2. Else, among all that are looked at."""
    shortlist: str = ""
    """File with the target tokens that are likely for each source token, where searches are to
    look at no others."""
    placeholders: int = 0
    """How many of the tokens ⟨1⟩ … ⟨9⟩ the model copies to their place in the translation."""
    alignment_layer: int
    licence: str
    quality: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    made_with: dict[str, str] = field(default_factory=dict)
    files: dict[str, StoredFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vocabulary = min(self.dimensions.source_vocabulary, self.dimensions.target_vocabulary)
        ids = vars(self.special_ids)
        for name, value in ids.items():
            check_within(0, vocabulary - 1, name, value)
        if len({value for name, value in ids.items() if name != "begin"}) < len(ids) - 1:
            raise ValueError(f"special ids are not different: {ids}")
        if not isinstance(self.ends_in_beam, bool):
            raise ValueError(f"ends_in_beam is {self.ends_in_beam!r}")
        self._check_languages()
        check_within(0, self.dimensions.decoder_layers - 1, "alignment_layer", self.alignment_layer)
        for name in ("max_source_tokens", "max_target_tokens"):
            check_within(1, _MAX_SIZE, name, getattr(self, name))
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision {self.precision!r} is not known")
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
    def graphs(self) -> tuple[str, ...]:
        """Files of all its graphs."""
        return (*GRAPHS, *SHORTLIST_GRAPHS) if self.shortlist else GRAPHS

    @property
    def cache_bytes_per_row(self) -> int:
        """Keys and values of every decoder layer, of both attentions."""
        positions = self.max_source_tokens + self.max_target_tokens
        item = 2 if self.precision == "float16" else 4
        return 2 * self.dimensions.decoder_layers * positions * self.dimensions.width * item

    def to_json(self) -> str:
        table = {k: v for k, v in asdict(self).items() if v or k not in _OPTIONAL}
        return json.dumps(table, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Raises ``ValueError`` where a key is missing, unknown, or of another type."""
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
