"""Translating text with a checkpoint's model, and measuring the translations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.errors import CorpusError
from dragoman_training.models.base import AnyModel
from dragoman_training.translate.search import Hypothesis, beam_search, default_limit

_BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Translation:
    text: str
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Quality:
    """How near translations are to their references, each from 0 to 100."""

    bleu: float
    chrf: float
    exact: float
    """Share of translations that are their reference, letter by letter."""
    bleu_signature: str
    chrf_signature: str


def measure(
    translations: list[str],
    references: list[str],
    target_language: str,
    *,
    tokenized: bool = False,
) -> Quality:
    """Corpus BLEU and chrF as sacrebleu defines them, with signatures.

    The language decides how BLEU finds words; unknown ones (and "") are split as European ones.
    In tokenized text, a word is what stands between spaces.
    """
    language = target_language.partition("-")[0]
    try:
        # Without force, sacrebleu complains about text that is tokenized.
        bleu = BLEU(tokenize="none", force=True) if tokenized else BLEU(trg_lang=language)
        chrf = CHRF()
    except (ImportError, RuntimeError):
        raise CorpusError(
            f"BLEU of {language!r} needs a tokenizer: pip install 'sacrebleu[{language}]'"
        ) from None
    bleu_score = bleu.corpus_score(translations, [references])
    chrf_score = chrf.corpus_score(translations, [references])
    equal = sum(t == r for t, r in zip(translations, references, strict=True))
    return Quality(
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        exact=100.0 * equal / len(references),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def translate(
    model: AnyModel,
    tokenizers: TokenizerPair,
    texts: list[str],
    *,
    beam: int = 1,
    alpha: float = 1.0,
    watch: Callable[[int], None] = lambda done: None,
) -> list[Translation]:
    """Translate sentences, in the order given. Blank ones come back as they are."""
    model.eval()
    device = next(model.parameters()).device
    ends = tokenizers.ends
    limit = model.settings.max_length - len(ends.start)
    pieces = tokenizers.source.encode_all(texts)
    sources = [[*ends.before, *source] for source in pieces]
    for number, source in enumerate(sources, start=1):
        if len(source) >= model.settings.max_length:
            raise CorpusError(
                f"sentence {number} has {len(source) + 1} tokens, its end included: "
                f"the model takes at most {model.settings.max_length}"
            )
    translations = [Translation(text, Hypothesis((), 0.0, 0.0)) for text in texts]
    done = 0
    blank = {n for n, text in enumerate(texts) if not text.strip()}
    lengths = [0 if n in blank else len(source) for n, source in enumerate(sources)]
    for numbers in _batches(lengths, _BATCH_TOKENS // beam):
        batch = [sources[n] for n in numbers]
        ids_BS, lengths_B = pad_sources(batch, device, ends.end if ends.ends_source else None)
        limits = [default_limit(len(source), limit) for source in batch]
        found = beam_search(model, ids_BS, lengths_B, limits, beam, alpha, ends=ends)
        for number, hypotheses in zip(numbers, found, strict=True):
            best = hypotheses[0]
            translations[number] = Translation(tokenizers.target.decode(best.ids), best)
        done += len(numbers)
        watch(done)
    return translations


def _batches(lengths: list[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of the sentences that have tokens, longest first, in batches of like lengths."""
    order = sorted((n for n, length in enumerate(lengths) if length), key=lambda n: -lengths[n])
    batch: list[int] = []
    for number in order:
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def pick_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
