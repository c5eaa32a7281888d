"""A model that is measured, as a bundle to serve and as weights for peers, with its texts."""

import itertools
import random
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman_cli.bench.texts import everyday_sentences
from dragoman_export.bundle_files import finish
from dragoman_server.bundle.golden import Golden
from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_training.data.tokenizer import Tokenizer
from dragoman_training.models.transformer import Transformer
from subjects.seeded import SOURCE_TOKENS, TARGET_TOKENS, export
from subjects.words import made_up_words

_TOKENIZER = "tokenizer.spm"


@dataclass(frozen=True)
class Text:
    """A sentence, as a client sends it and as ids."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Subject:
    """A model that is measured."""

    name: str
    what: str
    """What the model is and what it translates, for the page of results."""
    model: Transformer
    tokenizer: Tokenizer
    forced: int | None
    """Tokens that every translation is made to have, the end token included. None: as many as
    the model chooses."""
    stored: Path | None = None
    """Directory of an int8 bundle of the model that exists already. None: one is written."""

    def bundle(self, precision: str, directory: Path) -> Bundle:
        """Return a bundle that can be served, written to the directory on first use."""
        if precision == "int8" and self.stored is not None:
            return read_bundle(self.stored)
        path = directory / f"{self.name}-{precision}"
        if not path.exists():
            _write(self, precision, path)
        return read_bundle(path)

    def texts(self, count: int, seed: int) -> list[Text]:
        """Return everyday sentences, or made-up ones of one length where lengths are forced."""
        if self.forced is None:
            found = list(itertools.islice(everyday_sentences(seed), count))
        else:
            draws = random.Random(seed)  # noqa: S311
            words = made_up_words(self.model.source_vocabulary)
            found = [" ".join(draws.choices(words, k=SOURCE_TOKENS - 1)) for _ in range(count)]
        return [Text(text, tuple(self.tokenizer.encode(text))) for text in found]


def _write(subject: Subject, precision: str, path: Path) -> None:
    """Write a bundle as ``dragoman export`` does, but measure no quality: a seeded model has none.

    Its golden decodings may be near ties: they hold on the machine that the bundle is made on.
    """
    sources = [list(text.ids) for text in subject.texts(32, seed=1)]
    bundle = export(subject.model, precision, path, sources)
    (path / _TOKENIZER).write_bytes(subject.tokenizer.model)
    (decoded,) = greedy(Graphs(bundle, GraphSettings(rows=1)), [sources[0]], [TARGET_TOKENS])
    golden = Golden(
        source=sources[0],
        limit=TARGET_TOKENS,
        ids=list(decoded.ids),
        token_log_probs=list(decoded.token_log_probs),
    )
    manifest = replace(
        bundle.manifest,
        name=subject.name,
        source_language="en",
        target_language="pt",
        source_tokenizer=_TOKENIZER,
        target_tokenizer=_TOKENIZER,
        licence="none: for measuring",
    )
    finish(replace(bundle, manifest=manifest), [golden])
