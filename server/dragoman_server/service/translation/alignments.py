"""Alignments of translations that turned out to need one.

Few do: those with an unknown token, for which a word of the source is put. So alignments are not
asked for from the start. What was translated is scored, which aligns it token by token.
"""

from collections.abc import Sequence
from dataclasses import replace

from dragoman_server.engine.core import Answer, Hypothesis, Options, Sentence
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.service.translation.engine_calls import EngineCalls
from dragoman_server.text.plan import Part

_ALIGNED = Options(alignment=True)


async def with_alignments(
    engine: EngineCalls,
    model: ServedModel,
    detokenizer: Detokenizer,
    parts: Sequence[Part],
    answers: Sequence[Answer],
) -> list[Answer]:
    """Return answers of parts with all alignments that their text takes."""
    max_tokens = model.bundle.manifest.max_target_tokens - 1 - len(model.start)
    lacking = [
        (place, number, Sentence(part.ids, target=each.ids[:max_tokens], start=model.start))
        for place, (part, answer) in enumerate(zip(parts, answers, strict=True))
        for number, each in enumerate(answer.hypotheses)
        if detokenizer.needs_alignment(each)
    ]
    if not lacking:
        return list(answers)
    sentences = [sentence for _, _, sentence in lacking]
    scored = await engine.until_there_is_room(lambda: engine.answers(sentences, _ALIGNED))
    hypotheses = [list(answer.hypotheses) for answer in answers]
    for (place, number, _), score in zip(lacking, scored, strict=True):
        hypotheses[place][number] = _aligned(hypotheses[place][number], score)
    return [
        replace(answer, hypotheses=tuple(own))
        for answer, own in zip(answers, hypotheses, strict=True)
    ]


def _aligned(hypothesis: Hypothesis, scored: Answer) -> Hypothesis:
    if scored.failure:
        return hypothesis  # its unknown tokens are left out
    return replace(hypothesis, alignment=scored.hypotheses[0].alignment)
