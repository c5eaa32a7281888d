"""The models that are compared, each as a bundle to serve and as weights for peers.

*base* is a seeded Transformer-base whose translations are all made to have the same length: peers
do the same work, and nothing depends on what the model says. *en-pt* is the model of the
repository, on everyday sentences with the lengths that it chooses; *en-pt-wide* is the same, made
as large as a Transformer-base.
"""

import argparse
import io
import itertools
import random
from dataclasses import dataclass, replace
from pathlib import Path

import sentencepiece

from dragoman_cli.bench.texts import everyday_sentences
from dragoman_export.bundle_files import finish
from dragoman_export.read_back import read_back
from dragoman_server.bundle.golden import Golden
from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_training.data.tokenizer import BEGIN, END, PAD, UNKNOWN, Tokenizer
from dragoman_training.models.transformer import Transformer
from subjects.seeded import SOURCE, export, seeded_model
from subjects.widened import widened

EN_PT = Path(__file__).parents[2] / "models" / "en-pt"
TOKENS = 24
"""Of every translation of *base*, the end token included."""
VOCABULARY = 32_000
_TOKENIZER = "tokenizer.spm"
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True)
class Text:
    """A sentence, as a client sends it and as ids."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Subject:
    name: str
    what: str
    """For the page of results."""
    model: Transformer
    tokenizer: Tokenizer
    forced: int | None
    """Tokens of every translation, the end token included; None: as many as the model says."""
    stored: Path | None = None
    """An int8 bundle that is there already."""

    def bundle(self, precision: str, directory: Path) -> Bundle:
        """That can be served; written on first use."""
        if precision == "int8" and self.stored is not None:
            return read_bundle(self.stored)
        path = directory / f"{self.name}-{precision}"
        if not path.exists():
            _write(self, precision, path)
        return read_bundle(path)

    def texts(self, count: int, seed: int) -> list[Text]:
        if self.forced is None:
            found = list(itertools.islice(everyday_sentences(seed), count))
        else:
            draws = random.Random(seed)  # noqa: S311
            words = _words(self.model.source_vocabulary)
            found = [" ".join(draws.choices(words, k=SOURCE - 1)) for _ in range(count)]
        return [Text(text, tuple(self.tokenizer.encode(text))) for text in found]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how large *base* is; a small one is for trying a benchmark out."""
    parser.add_argument("--preset", default="base", help="size of the seeded model")
    parser.add_argument(
        "--vocabulary", type=int, default=VOCABULARY, help="tokens of the seeded model's vocabulary"
    )


def named(name: str, preset: str, vocabulary: int) -> Subject:
    """``preset`` and ``vocabulary`` are those of *base*; others have their own."""
    makers = {"en-pt": en_pt, "en-pt-wide": en_pt_wide}
    return base(preset, vocabulary) if name == "base" else makers[name]()


def base(preset: str = "base", vocabulary: int = VOCABULARY) -> Subject:
    return Subject(
        "base" if preset == "base" else preset,
        f"seeded Transformer ({preset}), {vocabulary:,} tokens of vocabulary, {TOKENS} tokens "
        f"after {SOURCE}, all the same length",
        seeded_model(preset, vocabulary),
        Tokenizer(_word_tokenizer(vocabulary)),
        forced=TOKENS,
    )


def en_pt() -> Subject:
    bundle = read_bundle(EN_PT)
    sizes = bundle.manifest.dimensions
    tokenizer = (EN_PT / bundle.manifest.source_tokenizer).read_bytes()
    return Subject(
        "en-pt",
        f"the repository's model (models/en-pt), width {sizes.width}, {sizes.encoder_layers} and "
        f"{sizes.decoder_layers} layers, {sizes.target_vocabulary:,} tokens of vocabulary, "
        "everyday sentences, lengths as the model chooses; float32 weights are its int8 weights "
        "read back, and each side quantises those",
        read_back(bundle),
        Tokenizer(tokenizer),
        forced=None,
        stored=EN_PT,
    )


def en_pt_wide() -> Subject:
    """Natural lengths, at the size that most models have."""
    small = en_pt()
    model = widened(small.model)
    sizes = model.settings
    return Subject(
        "en-pt-wide",
        f"the repository's model, widened to {sizes.width} with {sizes.encoder_layers} and "
        f"{sizes.decoder_layers} layers, so that it says the same at the cost of a "
        "Transformer-base; everyday sentences, lengths as the model chooses",
        model,
        small.tokenizer,
        forced=None,
    )


def _words(vocabulary: int) -> list[str]:
    """Made-up words, one for each id but the four special ones."""
    syllables = [c + v for c in _CONSONANTS for v in _VOWELS]
    made = itertools.product(syllables, repeat=3)
    return ["".join(word) for word in itertools.islice(made, vocabulary - END - 1)]


def _word_tokenizer(vocabulary: int) -> bytes:
    """A token is a word, so that a text has as many tokens as it is to have."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_words(vocabulary)),
        model_writer=model,
        model_type="word",
        vocab_size=vocabulary,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=BEGIN,
        eos_id=END,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    return model.getvalue()


def _write(subject: Subject, precision: str, path: Path) -> None:
    """As ``dragoman export`` does, but without measuring quality, of which a seeded model has none.

    Its golden decodings may be near ties: they hold on the machine that the bundle is made on.
    """
    sources = [list(text.ids) for text in subject.texts(32, seed=1)]
    bundle = export(subject.model, precision, path, sources)
    (path / _TOKENIZER).write_bytes(subject.tokenizer.model)
    (decoded,) = greedy(Graphs(bundle, GraphSettings(rows=1)), [sources[0]], [TOKENS])
    golden = Golden(
        source=sources[0],
        limit=TOKENS,
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
