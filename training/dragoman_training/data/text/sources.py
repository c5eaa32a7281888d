"""The text that a recipe names: its corpora, the words found in them, and its validation texts."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from dragoman_training.config.data_settings import CorpusSettings
from dragoman_training.config.recipe import Recipe
from dragoman_training.data.rules.word_pairs import find_word_pairs
from dragoman_training.data.text.corpus import LabelledText, Pair, ParallelText
from dragoman_training.data.text.examples import CorpusReader, Watch
from dragoman_training.data.text.toy import toy_text

WORDS = "words"
"""What reports call the corpus of single words."""


def corpus_readers(recipe: Recipe) -> list[CorpusReader]:
    """Return the corpora that a recipe names."""
    return [
        CorpusReader(
            corpus,
            _text(recipe, corpus),
            recipe.seed,
            (recipe.data.source_language, recipe.data.target_language),
        )
        for corpus in recipe.data.all_corpora
    ]


def word_readers(
    recipe: Recipe, readers: Sequence[CorpusReader], watch: Watch
) -> list[CorpusReader]:
    """Return a corpus of single words, found in corpora that were scanned; none if not wanted."""
    settings = recipe.data.words
    if not settings.weight:
        return []
    watch("looking for words", 0, None)

    def read(names: Collection[str]) -> Iterator[Pair]:
        for reader in readers:
            if reader.settings.name in names:
                yield from reader.pairs(settings.max_words)

    names = [reader.settings.name for reader in readers]
    known = {pair.source.lower() for pair in read(settings.known_from)}
    found = [
        pair
        for pair in find_word_pairs(lambda: read(names), settings)
        if pair.source.lower() not in known
    ]
    corpus = CorpusSettings(
        name=WORDS, source=(WORDS,), weight=settings.weight, variants=settings.variants
    )
    words = CorpusReader(corpus, [(pair, "") for pair in found], recipe.seed)
    words.scan(watch)
    return [words]


def toy_readers(recipe: Recipe, directory: Path) -> list[CorpusReader]:
    """Return the corpus of a toy, whose text is in the directory."""
    text = toy_text(directory / "toy", "train")
    settings = CorpusSettings(
        name="toy",
        source=tuple(map(str, text.sources)),
        remove_duplicates=recipe.data.remove_duplicates,
    )
    return [CorpusReader(settings, LabelledText(text), recipe.seed)]


def _text(recipe: Recipe, corpus: CorpusSettings) -> LabelledText:
    sources, targets, labels = (
        recipe.data.paths(files, corpus.directory)
        for files in (corpus.source, corpus.target, corpus.labels)
    )
    return LabelledText(ParallelText(sources, targets), labels)


def validation_texts(recipe: Recipe, directory: Path) -> dict[str, ParallelText]:
    """Return the validation texts by name; a toy's is in the directory."""
    if recipe.toy:
        return {"valid": toy_text(directory / "toy", "valid")}
    paths = recipe.data.paths
    return {
        text.name: ParallelText(paths(text.source), paths(text.target))
        for text in recipe.data.all_validation
    }


def named_files(recipe: Recipe) -> list[Path]:
    """Return the files that a recipe names."""
    if recipe.toy:
        return []
    files: list[Path] = []
    for corpus in recipe.data.all_corpora:
        files += _text(recipe, corpus).files
    for text in validation_texts(recipe, Path()).values():
        files += text.files
    return files
