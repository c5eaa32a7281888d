"""What a bundle's graphs make of text, beside the model in float32."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_export.errors import VerificationError
from dragoman_export.progress import Watch
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.engine.core import Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_server.runtime.scoring import default_limit
from dragoman_training.data.tokenizer import END
from dragoman_training.translate.evaluation import measure

MAX_BLEU_LOST = 0.3
"""Most BLEU that a bundle may lose against float32."""
MIN_AGREEMENT = 0.99
"""Smallest share of tokens that float16 must have in common with float32."""
_ROWS = 64
"""Sentences that are decoded at once."""


@dataclass(frozen=True)
class TextQuality:
    """What the bundle's graphs make of given text, beside the model in float32."""

    sentences: int
    """Sentences that were translated."""
    bleu: float
    """BLEU of the bundle's translations, from 0 to 100."""
    chrf: float
    """chrF of the bundle's translations, from 0 to 100."""
    bleu_float32: float
    """BLEU of the translations in float32, from 0 to 100."""
    identical: float
    """Share of sentences that have the same translation in float32, from 0 to 1."""
    token_agreement: float
    """Share of tokens that are the same in float32, place by place, from 0 to 1."""
    bleu_signature: str
    """How sacrebleu computed BLEU."""
    chrf_signature: str
    """How sacrebleu computed chrF."""


def translate_ids(
    bundle: RunnableBundle,
    sources: Sequence[Sequence[int]],
    start: Sequence[int],
    stage: str,
    watch: Watch,
) -> list[tuple[int, ...]]:
    """Translate greedily: return the ids of each sentence's translation."""
    if bundle.shortlist is None:
        return _by_reference(bundle, sources, start, lambda n: watch(stage, n, len(sources)))
    return _by_engine(bundle, sources, start, lambda n: watch(stage, n, len(sources)))


def _by_reference(
    bundle: RunnableBundle,
    sources: Sequence[Sequence[int]],
    start: Sequence[int],
    translated: Callable[[int], None],
) -> list[tuple[int, ...]]:
    """Translate with the plain search, sentences of like length together."""
    graphs = Graphs(bundle, GraphSettings(rows=_ROWS))
    max_tokens = graphs.manifest.max_target_tokens - len(start)
    order = sorted(range(len(sources)), key=lambda n: len(sources[n]))
    decoded: list[tuple[int, ...]] = [()] * len(sources)
    for at in range(0, len(order), _ROWS):
        numbers = order[at : at + _ROWS]
        batch = [sources[n] for n in numbers]
        limits = [default_limit(len(s), max_tokens) for s in batch]
        found = greedy(graphs, batch, limits, start=start)
        for number, each in zip(numbers, found, strict=True):
            decoded[number] = each.ids
        translated(at + len(numbers))
    return decoded


def _by_engine(
    bundle: RunnableBundle,
    sources: Sequence[Sequence[int]],
    start: Sequence[int],
    translated: Callable[[int], None],
) -> list[tuple[int, ...]]:
    """Translate with the engine, which knows shortlists as the plain search does not."""
    decoded: list[tuple[int, ...]] = []
    with Translator(bundle, EngineSettings(rows=_ROWS, lanes=1)) as translator:
        for at in range(0, len(sources), _ROWS):
            some = [Sentence(tuple(s), start=tuple(start)) for s in sources[at : at + _ROWS]]
            decoded += [answer.hypotheses[0].ids for answer in translator.translate(some)]
            translated(len(decoded))
    return decoded


def compare_quality(
    ours: Sequence[tuple[int, ...]],
    float32: Sequence[tuple[int, ...]],
    references: Sequence[str],
    decode: Callable[[Sequence[int]], str],
    target_language: str,
) -> TextQuality:
    """Measure the translations of one text in two precisions."""
    quality, plain = (
        measure([decode(ids) for ids in decoded], list(references), target_language)
        for decoded in (ours, float32)
    )
    equal = sum(a == b for a, b in zip(ours, float32, strict=True))
    places = tokens = 0
    for a, b in zip(ours, float32, strict=True):
        left, right = (*a, END), (*b, END)
        places += max(len(left), len(right))
        tokens += sum(x == y for x, y in zip(left, right, strict=False))
    return TextQuality(
        sentences=len(references),
        bleu=quality.bleu,
        chrf=quality.chrf,
        bleu_float32=plain.bleu,
        identical=equal / len(references),
        token_agreement=tokens / places,
        bleu_signature=quality.bleu_signature,
        chrf_signature=quality.chrf_signature,
    )


def check_quality(manifest: Manifest, quality: TextQuality) -> None:
    """Refuse a bundle that translates worse than the model it was made from."""
    precision = manifest.precision
    lost = quality.bleu_float32 - quality.bleu
    if lost > MAX_BLEU_LOST:
        what, mend = precision, "Products that lose it can stay float32: --keep-float32 projection"
        if manifest.shortlist:
            what = f"{precision} with the shortlist"
            mend = "See what it is without, or with a longer one: --shortlist-likely 100"
        raise VerificationError(
            f"{what} loses {lost:.2f} BLEU on the given text ({quality.bleu_float32:.2f} to "
            f"{quality.bleu:.2f}); at most {MAX_BLEU_LOST} is allowed. {mend}"
        )
    if precision == "float16" and quality.token_agreement < MIN_AGREEMENT:
        raise VerificationError(
            f"float16 gives only {quality.token_agreement:.1%} of the ids that float32 gives; "
            f"at least {MIN_AGREEMENT:.0%} are needed"
        )
