"""What a bundle's graphs make of text, beside the model in float32."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dragoman_export.errors import VerificationError
from dragoman_export.progress import Watch
from dragoman_export.proofs.bootstrap import Interval, bleu_lost_interval
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.engine.core import Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Pending, Translator
from dragoman_training.data.tokenizer import END
from dragoman_training.translate.evaluation import measure

MAX_BLEU_LOST = 0.3
"""Most BLEU that a bundle may lose against float32, where nobody says otherwise."""
MIN_AGREEMENT = 0.99
"""Smallest share of tokens that float16 must have in common with float32."""
Translations = dict[tuple[int, ...], tuple[int, ...]]
"""Translation of each source, both as ids."""

_ROWS = 32
"""Sentences that are decoded at once."""
_REQUEST, _REQUESTS = 16, 6
"""Sentences of a request, and requests that wait while others are decoded."""


@dataclass(frozen=True)
class TextQuality:
    """What the bundle's graphs make of given text, beside the model in float32."""

    text: str
    """Name of the text that was translated."""
    sentences: int
    """Sentences that were translated."""
    bleu: float
    """BLEU of the bundle's translations, from 0 to 100."""
    chrf: float
    """chrF of the bundle's translations, from 0 to 100."""
    bleu_float32: float
    """BLEU of the translations in float32, from 0 to 100."""
    bleu_lost_interval: Interval
    """Where the BLEU that is lost against float32 lies with a confidence of 95%, by a paired
    bootstrap over the sentences."""
    identical: float
    """Share of sentences that have the same translation in float32, from 0 to 1."""
    token_agreement: float
    """Share of tokens that are the same in float32, place by place, from 0 to 1."""
    bleu_signature: str
    """How sacrebleu computed BLEU."""
    chrf_signature: str
    """How sacrebleu computed chrF."""


def translate_ids(
    bundle: RunnableBundle, sources: Iterable[Sequence[int]], start: Sequence[int], watch: Watch
) -> Translations:
    """Translate greedily with the engine; each source once, however often it is there."""
    stage = f"translating in {bundle.manifest.precision}"
    # Sentences of like length are encoded together, and the longest begin first.
    order = sorted({tuple(source) for source in sources}, key=lambda source: (-len(source), source))
    found: Translations = {}
    pending: deque[tuple[list[tuple[int, ...]], Pending]] = deque()
    watch(stage, 0, len(order))
    with Translator(bundle, EngineSettings(rows=_ROWS)) as translator:
        for at in range(0, len(order), _REQUEST):
            some = order[at : at + _REQUEST]
            sentences = [Sentence(source, start=tuple(start)) for source in some]
            pending.append((some, translator.submit(sentences)))
            is_last = at + _REQUEST >= len(order)
            while pending and (is_last or len(pending) > _REQUESTS):
                these, answers = pending.popleft()
                for source, answer in zip(these, answers.result(), strict=True):
                    found[source] = answer.hypotheses[0].ids
                watch(stage, len(found), len(order))
    return found


def compare_quality(
    ours: Sequence[tuple[int, ...]],
    float32: Sequence[tuple[int, ...]],
    references: Sequence[str],
    decode: Callable[[Sequence[int]], str],
    target_language: str,
    text: str,
) -> TextQuality:
    """Measure the translations of one text in two precisions."""
    ours_text, plain_text = ([decode(ids) for ids in decoded] for decoded in (ours, float32))
    quality = measure(ours_text, list(references), target_language)
    plain = measure(plain_text, list(references), target_language)
    equal = sum(a == b for a, b in zip(ours, float32, strict=True))
    places = tokens = 0
    for a, b in zip(ours, float32, strict=True):
        left, right = (*a, END), (*b, END)
        places += max(len(left), len(right))
        tokens += sum(x == y for x, y in zip(left, right, strict=False))
    return TextQuality(
        text=text,
        sentences=len(references),
        bleu=quality.bleu,
        chrf=quality.chrf,
        bleu_float32=plain.bleu,
        bleu_lost_interval=bleu_lost_interval(ours_text, plain_text, references, target_language),
        identical=equal / len(references),
        token_agreement=tokens / places,
        bleu_signature=quality.bleu_signature,
        chrf_signature=quality.chrf_signature,
    )


def check_quality(manifest: Manifest, quality: TextQuality, max_bleu_lost: float) -> None:
    """Refuse a bundle that translates worse than the model it was made from.

    It is refused if it loses more with a confidence of 95%: on a few hundred sentences a model may
    lose half a point of BLEU by chance, and win it on the next.
    """
    precision = manifest.precision
    lost = quality.bleu_float32 - quality.bleu
    low, high = quality.bleu_lost_interval
    if low > max_bleu_lost:
        what, mend = precision, "Products that lose it can stay float32: --keep-float32 projection"
        if manifest.shortlist:
            what = f"{precision} with the shortlist"
            mend = "See what it is without, or with a longer one: --shortlist-likely 100"
        raise VerificationError(
            f"{what} loses {lost:.2f} BLEU on {quality.sentences} sentences of {quality.text} "
            f"({quality.bleu_float32:.2f} to {quality.bleu:.2f}; with 95% confidence between "
            f"{low:.2f} and {high:.2f}); at most {max_bleu_lost:g} is allowed. {mend}; or allow "
            "more: --max-bleu-lost"
        )
    if precision == "float16" and quality.token_agreement < MIN_AGREEMENT:
        raise VerificationError(
            f"float16 gives only {quality.token_agreement:.1%} of the ids that float32 gives; "
            f"at least {MIN_AGREEMENT:.0%} are needed"
        )
