"""What to do about a part whose translation is not good enough: another try, or the best of it.

    masks lost or repeated   once more with a wider search, where the model has placeholders; then
                             in pieces around what it keeps
    other numbers            once more with the numbers masked, where the model has placeholders;
                             where those are lost and one number was wrong, the right one in its
                             place
    empty, or a loop         once more with a wider search that may not repeat itself
    still empty              the source
    still a loop             what came before it

Knows nothing of requests: it looks at one answer, and says what is to be tried next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from dragoman_server.engine.core import Answer, Finish, Options
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.text.faults import Examiner, Fault, cut_loop
from dragoman_server.text.markup.placing import Placed
from dragoman_server.text.plan import Part, Planner

_CAREFUL_BEAM = 4
"""Hypotheses of a wider search, at least."""
_CAREFUL_NGRAM = 3
"""Tokens in a row that a wider search may not repeat."""


class Way(Enum):
    """How a part was, or is to be, translated."""

    FIRST = "first"
    """The part is translated as the request asked."""
    CAREFUL = "careful"
    """The part is translated with a wider search, without repetitions."""
    NUMBERS = "numbers"
    """The part is translated with its numbers masked, and a wider search."""
    AROUND = "around"
    """The part is translated in pieces, without what it keeps."""
    PIECES = "pieces"
    """The part is translated in pieces between its tags."""


@dataclass(frozen=True)
class TranslatedPart:
    """A part with its translation."""

    part: Part
    text: str
    """The translation, with what was masked in its place."""
    answer: Answer
    """What the engine said: the hypothesis of this text is the first."""
    tags: tuple[Placed, ...] = ()
    """Tags that stand within the translation, in order."""
    fault: Fault | None = None
    """What is wrong with the translation, and could not be mended."""


@dataclass(frozen=True)
class Retry:
    """Parts to translate in another way, which stand for the one that was tried."""

    parts: Sequence[Part]
    way: Way
    reason: str
    """What was wrong with the translation, in a word for metrics."""
    instead: TranslatedPart | None = None
    """What to take where this try loses its masks, or has other numbers too."""


@dataclass(frozen=True)
class Mender:
    """Judges the translations of one text."""

    text: str
    planner: Planner
    examiner: Examiner
    detokenizer: Detokenizer
    keeps_numbers: bool = True
    """Whether a translation with other numbers is done again."""
    mends: bool = True
    """Whether anything but lost masks is looked for."""
    limited: bool = False
    """Whether the request says how long a translation may be: one that was ended there is what
    was asked for, whatever it looks like."""

    def judge(
        self, part: Part, answer: Answer, way: Way, instead: TranslatedPart | None = None
    ) -> TranslatedPart | Retry:
        """Return the translation of a part, or what is to be tried in its place.

        ``instead`` is what this try has to be better than, where there was one before it.
        """
        tried = self._tried(part, answer)
        if not tried:
            return instead or self._lost_masks(part, way)
        for done, fault in tried:
            if fault is None:
                return done
        done, fault = tried[0]
        source = part.span.of(self.text)
        if fault is Fault.NUMBERS:
            return self._other_numbers(done, way) or instead or replace(done, fault=fault)
        if way is Way.FIRST:
            return Retry([part], Way.CAREFUL, fault.value if fault else "")
        text = source if fault is Fault.EMPTY else cut_loop(done.text)
        return replace(done, text=text, fault=fault)

    def _tried(self, part: Part, answer: Answer) -> list[tuple[TranslatedPart, Fault | None]]:
        """Return the hypotheses in which everything masked is found again, with their faults."""
        source = part.span.of(self.text)
        found: list[tuple[TranslatedPart, Fault | None]] = []
        for number, hypothesis in enumerate(answer.hypotheses):
            restored = part.masked.restore(self.detokenizer.detokenize(part, hypothesis))
            if restored is None:
                continue
            done = TranslatedPart(part, restored, _led_by(answer, number))
            cut_off = self.limited and hypothesis.finish is Finish.LENGTH
            fault = None
            if self.mends and not cut_off:
                fault = self.examiner.fault(source, restored)
            if fault is Fault.NUMBERS and not self.keeps_numbers:
                fault = None
            found.append((done, fault))
        return found

    def _lost_masks(self, part: Part, way: Way) -> Retry:
        """Return the next try for a part whose masks were lost.

        A model with placeholders may find them in a wider search; names were seldom found.
        """
        if way is Way.FIRST and self.planner.masks.has_placeholders:
            return Retry([part], Way.CAREFUL, "masks")
        return Retry(self.planner.around(self.text, part), Way.AROUND, "masks")

    def _other_numbers(self, done: TranslatedPart, way: Way) -> Retry | None:
        if way in (Way.NUMBERS, Way.AROUND):
            return None
        part = done.part
        if not self.planner.masks.has_placeholders:
            return Retry([part], Way.CAREFUL, "numbers") if way is Way.FIRST else None
        numbers = self.examiner.numbers
        masked = self.planner.with_numbers(self.text, part, numbers.respelt(self.text, part.span))
        if masked is None:
            return None
        corrected = numbers.corrected(part.span.of(self.text), done.text)
        instead = None if corrected is None else replace(done, text=corrected)
        return Retry([masked], Way.NUMBERS, "numbers", instead)


def _led_by(answer: Answer, number: int) -> Answer:
    """Return an answer with the hypothesis of this number before the others."""
    if not number:
        return answer
    others = answer.hypotheses[:number] + answer.hypotheses[number + 1 :]
    return replace(answer, hypotheses=(answer.hypotheses[number], *others))


def options_for(way: Way, options: Options, max_beam: int) -> Options:
    """Return the options of another try: a search that looks further, and may not repeat itself."""
    if way not in (Way.CAREFUL, Way.NUMBERS):
        return options
    beam = min(max(options.beam, _CAREFUL_BEAM), max_beam)
    wider = replace(options, beam=beam, n_best=beam, sampling=None)
    if way is Way.NUMBERS:
        return wider
    min_tokens = max(options.min_tokens, 1)
    if options.max_tokens is not None:
        min_tokens = min(min_tokens, options.max_tokens - 1)
    ngram = options.no_repeat_ngram or _CAREFUL_NGRAM
    return replace(wider, no_repeat_ngram=ngram, min_tokens=min_tokens)
