"""Small corpora, written as files or as stores of tokens."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.data.prepare import prepare
from dragoman_training.data.prepared import PreparedData, load_prepared
from dragoman_training.data.token_store import TokenStore, TokenStoreWriter

LANGUAGES = {"source_language": "en", "target_language": "pt"}


Table = dict[str, Any]


def corpus_of(directory: Path, name: str, pairs: Sequence[tuple[str, str]], **more: Any) -> Table:
    """Write a corpus, and return its table of a recipe."""
    (directory / f"{name}.en").write_text("".join(f"{source}\n" for source, _ in pairs))
    (directory / f"{name}.pt").write_text("".join(f"{target}\n" for _, target in pairs))
    return {"name": name, "source": f"{name}.en", "target": f"{name}.pt", **more}


def labels_of(directory: Path, name: str, labels: Sequence[str]) -> str:
    (directory / name).write_text("".join(f"{label}\n" for label in labels))
    return name


def numbered(first: int, count: int) -> list[tuple[str, str]]:
    """Pairs that can be told apart, of words that a small vocabulary can be learnt from."""
    words = ["house", "mouse", "louse", "boat", "coat", "goat", "mill", "hill", "will", "kill"]
    return [
        (f"the {words[n % 10]} of number {n} is over there", f"a {words[n % 7]} número {n} está lá")
        for n in range(first, first + count)
    ]


def store_of(path: Path, pairs: Iterable[tuple[list[int], list[int]]]) -> TokenStore:
    with TokenStoreWriter(path, vocabulary=1000) as writer:
        for source, target in pairs:
            writer.add(source, target)
    return TokenStore(path)


def recipe_for(source: Path, target: Path, **sections: dict[str, Any]) -> Recipe:
    table: dict[str, Any] = {
        "data": {
            "source_language": "en",
            "target_language": "pt",
            "train_source": [str(source)],
            "train_target": [str(target)],
            "valid_source": [str(source)],
            "valid_target": [str(target)],
        },
        "tokenizer": {"vocabulary": 305},
    }
    for name, section in sections.items():
        table[name] = {**table.get(name, {}), **section}
    return recipe_from_dict(table)


def quiet(stage: str, done: int, total: int | None) -> None:
    pass


def recipe_of(directory: Path, *corpora: Table, **sections: Table) -> Recipe:
    """A recipe of a tiny model and the corpora of these tables, in a directory."""
    table: Table = {
        "data": {**LANGUAGES, "directory": str(directory), "corpora": list(corpora)},
        "tokenizer": {"vocabulary": 300},
        "model": {"preset": "tiny", "width": 16, "max_length": 64},
        "training": {"batch_tokens": 256, "max_steps": 3, "warmup_steps": 2},
    }
    table["data"]["max_tokens"] = 64
    for name, section in sections.items():
        table[name] = {**table.get(name, {}), **section}
    return recipe_from_dict(table)


def prepared(recipe: Recipe, directory: Path) -> PreparedData:
    """Prepare the text of a recipe in a directory that is not there yet, and read it."""
    prepare(recipe, directory, quiet)
    return load_prepared(directory)
