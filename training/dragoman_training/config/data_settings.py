"""The settings of a recipe's text: corpora, how often each is drawn, and what is made of it."""

from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path

from dragoman_training.config.checks import above, at_least, at_most

_MAX_WEIGHT = 1000.0


@dataclass(frozen=True, kw_only=True)
class VariantSettings:
    """Other forms of a corpus's pairs to train on beside them, each as a share of its pairs.

    A share of 0.02 adds one example for every fifty pairs. Pairs that a form does not suit add
    nothing: a single word has no Title Case of its own, a long sentence makes no list item.
    """

    upper: float = 0.0
    """ALL CAPS on both sides."""
    title: float = 0.0
    """A source In Title Case; the target stays as it is."""
    lower: float = 0.0
    """Lower case without the final punctuation mark."""
    bare: float = 0.0
    """Without the final punctuation mark."""
    capital: float = 0.0
    """The first letter of both sides as a capital: for dictionaries."""
    typos: float = 0.0
    """One or two typing errors in the source."""
    no_accents: float = 0.0
    """A source without its accents."""
    items: float = 0.0
    """A bullet, number or letter before both sides, as in a list."""
    emoji: float = 0.0
    """An emoji behind both sides, or before them."""
    numbers: float = 0.0
    """Other digits in the numbers that both sides have."""
    placeholders: float = 0.0
    """Spans that both sides have alike replaced by ⟨1⟩ … ⟨9⟩."""

    def __post_init__(self) -> None:
        for each in fields(self):
            at_least(0, each.name, getattr(self, each.name))
            at_most(1, each.name, getattr(self, each.name))


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """Which words to train on by themselves, and how often."""

    weight: float = 0.0
    """How often each word is drawn in an epoch; 0: no words are looked for."""
    count: int = 20_000
    """Most words to find; the most frequent ones are taken."""
    min_sentences: int = 10
    """Fewest sentences that have a word."""
    min_dice: float = 0.25
    """Smallest Dice coefficient of a word with its translation."""
    max_words: int = 12
    """Longest source to look at, in words: in a long sentence all words occur with all others."""
    max_pairs: int = 1_500_000
    """Most sentence pairs to look at."""
    known_from: tuple[str, ...] = ()
    """Names of corpora with words of their own: those words are not looked for."""
    variants: VariantSettings = field(default_factory=VariantSettings)
    """Other forms of the words, as of the pairs of a corpus."""

    def __post_init__(self) -> None:
        at_least(0, "weight", self.weight)
        at_most(_MAX_WEIGHT, "weight", self.weight)
        for name in ("count", "min_sentences", "max_words", "max_pairs"):
            at_least(1, name, getattr(self, name))
        above(0, "min_dice", self.min_dice)
        at_most(1, "min_dice", self.min_dice)


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """One corpus of a mixture."""

    name: str = ""
    """What reports call it."""
    directory: str = ""
    """Where relative paths of this corpus begin. Empty: as ``data.directory`` says."""
    source: tuple[str, ...] = ()
    """Files, plain or gzip. Without ``target``: TSV files with both sides."""
    target: tuple[str, ...] = ()
    """Files with the translations of ``source``, line by line."""
    labels: tuple[str, ...] = ()
    """Files with a label on each line, one file for each file of ``source``: where that line of
    the corpus comes from."""
    weight: float = 1.0
    """How often each pair is drawn in an epoch: 0.5 is every second epoch, 3 is three times."""
    label_weights: dict[str, float] = field(default_factory=dict)
    """By label, what multiplies the weight. A key may be a pattern, as ``*/pt-PT``; the first one
    that matches counts, and a label that none matches has 1."""
    machine_made: bool = False
    """The target is a machine's: pairs with its typical faults are mended or dropped."""
    max_ratio: float = 4.0
    """Pairs with one side more than this many times longer, in tokens, are left out."""
    remove_duplicates: bool = True
    """Leave out pairs that came before in this corpus. Other corpora may have them too."""
    variants: VariantSettings = field(default_factory=VariantSettings)
    """Other forms of the pairs to train on beside them."""

    def __post_init__(self) -> None:
        if not self.name or not self.source:
            raise ValueError("name and source are needed for each corpus")
        at_least(0, "weight", self.weight)
        at_most(_MAX_WEIGHT, "weight", self.weight)
        at_least(1, "max_ratio", self.max_ratio)
        for label, weight in self.label_weights.items():
            at_least(0, f"label_weights.{label}", weight)
            at_most(_MAX_WEIGHT, f"label_weights.{label}", weight)
        if self.label_weights and not self.labels:
            raise ValueError("label_weights need labels: a file with the label of each line")

    def weight_of(self, label: str) -> float:
        """Return how often a pair of this label is drawn in an epoch."""
        for pattern, weight in self.label_weights.items():
            if fnmatchcase(label, pattern):
                return self.weight * weight
        return self.weight


@dataclass(frozen=True, kw_only=True)
class ValidationText:
    """Held-out text that a run is measured on."""

    name: str = "valid"
    """What reports call it."""
    source: tuple[str, ...] = ()
    """Files, plain or gzip. Without ``target``: TSV files with both sides."""
    target: tuple[str, ...] = ()
    """Files with the translations of ``source``, line by line."""

    def __post_init__(self) -> None:
        if not self.name or not self.source:
            raise ValueError("name and source are needed for each validation text")
        if "/" in self.name or self.name.startswith("."):  # it names a directory
            raise ValueError(f"name is {self.name!r}: it must have no slash and begin with no dot")


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    source_language: str = ""
    """Tag of the language to translate from, such as ``en``."""
    target_language: str = ""
    """Tag of the language to translate into, such as ``pt-BR``."""
    directory: str = ""
    """Where relative paths of text begin. Empty: where the command runs."""
    train_source: tuple[str, ...] = ()
    """One corpus, the short way: files, plain or gzip. Without ``train_target``: TSV files."""
    train_target: tuple[str, ...] = ()
    """Files with the translations of ``train_source``, line by line."""
    corpora: tuple[CorpusSettings, ...] = ()
    """Several corpora, each with a weight, filters and variants of its own."""
    words: WordSettings = field(default_factory=WordSettings)
    """Single words to train on, with translations that are found in the corpora."""
    valid_source: tuple[str, ...] = ()
    """One validation text, the short way: files, plain or gzip. Without ``valid_target``: TSV
    files."""
    valid_target: tuple[str, ...] = ()
    """Files with the translations of ``valid_source``, line by line."""
    validation: tuple[ValidationText, ...] = ()
    """Several validation texts, each measured by itself."""
    max_tokens: int = 128
    """Longer training pairs are left out; the end token counts."""
    max_ratio: float = 4.0
    """Pairs of ``train_source`` with one side more than this many times longer are left out."""
    remove_duplicates: bool = True
    """Leave out pairs of ``train_source`` that came before."""
    tokenized: bool = False
    """The text is split into words already: BLEU takes them as they are."""
    joined: float = 0.0
    """Longer examples to train on beside the pairs, made of several joined: as a share of them."""
    joined_pairs: int = 4
    """Most pairs in a joined example."""

    def __post_init__(self) -> None:
        at_least(2, "max_tokens", self.max_tokens)
        at_least(1, "max_ratio", self.max_ratio)
        at_least(0, "joined", self.joined)
        at_most(10, "joined", self.joined)
        at_least(2, "joined_pairs", self.joined_pairs)
        at_most(64, "joined_pairs", self.joined_pairs)  # each joined example draws so many
        for short, several in (("train_source", "corpora"), ("valid_source", "validation")):
            if getattr(self, short) and getattr(self, several):
                raise ValueError(f"{short} and {several} exclude each other: use one of them")
            names = [each.name for each in getattr(self, several)]
            for name in {name for name in names if names.count(name) > 1}:
                raise ValueError(f"{several}: two are called {name!r}")
        if self.words.weight and "words" in {corpus.name for corpus in self.corpora}:
            raise ValueError("corpora: 'words' is the name of the words that are found in them")
        for name in set(self.words.known_from) - {corpus.name for corpus in self.corpora}:
            raise ValueError(f"words.known_from has {name!r}, which no corpus is called")

    @property
    def all_corpora(self) -> tuple[CorpusSettings, ...]:
        """The corpora, however they were written."""
        if not self.train_source:
            return self.corpora
        return (
            CorpusSettings(
                name="train",
                source=self.train_source,
                target=self.train_target,
                max_ratio=self.max_ratio,
                remove_duplicates=self.remove_duplicates,
            ),
        )

    @property
    def all_validation(self) -> tuple[ValidationText, ...]:
        """The validation texts, however they were written."""
        if not self.valid_source:
            return self.validation
        return (ValidationText(source=self.valid_source, target=self.valid_target),)

    def paths(self, files: tuple[str, ...], directory: str = "") -> tuple[Path, ...]:
        """Return where the named files are; a corpus may have a directory of its own."""
        return tuple(Path(directory or self.directory) / file for file in files)
