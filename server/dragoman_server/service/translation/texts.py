"""Translating texts: planned, handed to the engine, put together again.

texts → parts of each → a request of the engine → answers → translations
"""

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Answer, NewToken, Options, Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.service import offload, requests, responses
from dragoman_server.service.calls import Call
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.responses import Clock
from dragoman_server.service.settings import Limits
from dragoman_server.service.translation.alignments import with_alignments
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.service.translation.engine_calls import ALONE, EngineCalls, Queueing
from dragoman_server.service.translation.mending import (
    Mender,
    Retry,
    TranslatedPart,
    Way,
    options_for,
)
from dragoman_server.service.translation.stream_window import StreamWindow
from dragoman_server.service.work import Work
from dragoman_server.text.gaps import gap_between
from dragoman_server.text.plan import OverlongError, Part, join
from dragoman_server.text.segments import Span
from dragoman_server.text.streaming import GrowingText

T = TypeVar("T")


@dataclass(frozen=True)
class Text:
    """A text of a request, taken apart."""

    field: str
    """The name of the text's field on the wire."""
    text: str
    parts: list[Part]


@dataclass(frozen=True)
class Plan:
    """The texts of a request, ready for the engine."""

    texts: Sequence[Text]
    prefix: tuple[int, ...]
    """Target tokens that the translation of each text has to begin with."""
    letters: int
    """Letters of all texts, by which it is decided what is done in a thread."""
    clock: Clock


class TextTranslator:
    """Translates texts of one call, with the same options, by one model."""

    def __init__(
        self,
        model: ServedModel,
        options: pb.Options,
        call: Call,
        limits: Limits,
        queueing: Queueing = ALONE,
    ) -> None:
        self._began = time.monotonic()
        self._model = model
        self._wire = options
        self._options = requests.engine_options(options, model.target, limits.max_target_tokens)
        self._plan_options = requests.plan_options(options)
        self._mends = requests.is_on(options, "mend")
        self._detokenizer = Detokenizer(
            model.source, model.target, requests.is_on(options, "replace_unknown")
        )
        self._call = call
        self._limits = limits
        self._engine = EngineCalls(model.dispatcher, call.deadline, queueing)
        call.facts["model"] = model.name

    async def plan(self, texts: Sequence[str], fields: Sequence[str]) -> Plan:
        """Find the parts of texts; ``fields`` has the name of each text's field on the wire."""
        letters = sum(map(len, texts)) + len(self._wire.target_prefix)
        planned, prefix = await offload.for_letters(letters, lambda: self._plan(texts, fields))
        self._call.count("source_tokens", sum(len(p.ids) for text in planned for p in text.parts))
        return Plan(planned, prefix, letters, Clock(self._began, time.monotonic()))

    async def translate(self, plan: Plan) -> list[pb.Translation]:
        """Translate all texts: one request of the engine, and more where something went wrong."""
        parts = [(text, part) for text in plan.texts for part in text.parts]
        answers = await self._run(plan, parts, self._options)
        judged = await _apart(
            plan,
            lambda: [
                (text, self._judge(text, part, answer, Way.FIRST))
                for (text, part), answer in zip(parts, answers, strict=True)
            ],
        )
        mended = await self._mend(plan, judged)

        def put_together() -> list[pb.Translation]:
            done = iter(mended)
            return [
                self._translation(plan, text, [each for _ in text.parts for each in next(done)])
                for text in plan.texts
            ]

        made = await _apart(plan, put_together)
        self._call.count("target_tokens", sum(translation.target_tokens for translation in made))
        return made

    async def stream(self, plan: Plan) -> AsyncGenerator[str | pb.Translation, None]:
        """Yield the text of the only translation as soon as it is certain; then the whole of it."""
        (text,) = plan.texts
        language = self._model.target_language
        done: list[TranslatedPart] = []
        reached = 0  # up to here, the text and its translation are sent
        window = StreamWindow(
            [(text, part) for part in text.parts],
            self._limits.stream_window,
            submit=lambda some: self._submit(plan, some, self._options, stream=True),
            wait_for_room=self._model.dispatcher.wait_for_room,
        )
        with window:
            for number, part in enumerate(text.parts):
                source = part.span.of(text.text)
                # What may be done again can't be shown before it is known that it need not be.
                has_numbers = self._mends and any(map(str.isdigit, source))
                held = bool(part.masked.kept) or has_numbers
                grows = None if held else self._growing_text(source)
                before = done[-1].text if done else None
                if grows is not None:
                    yield gap_between(text.text, reached, part.span.start, before, language)
                    reached, before = part.span.start, None
                while isinstance(event := await window.next(number), NewToken):
                    if grows is not None and event.token != self._model.end:
                        yield grows.add(event.token)
                (event,) = await self._aligned([part], [event])
                judged = self._judge(text, part, event, Way.FIRST)
                if grows is not None and grows.sent:
                    whole = self._as_it_is(part, event)
                    done.append(replace(whole, text=grows.ended(whole.text)))
                    yield done[-1].text[grows.sent :]
                    reached = part.span.end
                else:
                    (mended,) = await self._mend(plan, [(text, judged)])
                    done += mended
                    end = mended[-1].part.span.end if mended else reached
                    yield join(
                        text.text,
                        [each.part for each in mended],
                        [each.text for each in mended],
                        Span(reached, end),
                        before=before,
                        language=language,
                    ).text
                    reached = end
        before = done[-1].text if done else None
        yield gap_between(text.text, reached, len(text.text), before, language)
        made = await _apart(plan, lambda: self._translation(plan, text, done))
        self._call.count("target_tokens", made.target_tokens)
        yield made

    def _plan(
        self, texts: Sequence[str], fields: Sequence[str]
    ) -> tuple[list[Text], tuple[int, ...]]:
        """Return the texts taken apart, and the tokens that their translations begin with."""
        # Before anything that takes longer: splitting is far more work than tokenizing.
        requests.check_tokens(
            fields[0].partition("[")[0],
            sum(map(len, self._model.source.encode_all(texts))),
            self._limits.max_source_tokens,
        )
        prefix = self._model.target.encode(self._wire.target_prefix)
        planned: list[Text] = []
        for text, field in zip(texts, fields, strict=True):
            try:
                parts = self._model.planner.plan(text, self._plan_options)
            except OverlongError as error:
                raise InvalidArgumentError(field, str(error), reason="SENTENCE_TOO_LONG") from None
            if prefix and len(parts) > 1:
                raise InvalidArgumentError(
                    "options.target_prefix", f"is for one sentence, and {field} has more"
                )
            planned.append(Text(field, text, parts))
        return planned, prefix

    async def _run(
        self, plan: Plan, parts: Sequence[tuple[Text, Part]], options: Options
    ) -> list[Answer]:
        if not parts:
            return []
        with await self._submit(plan, parts, options, stream=False) as work:
            answers = await work.answers()
        return await self._aligned([part for _, part in parts], answers)

    async def _submit(
        self, plan: Plan, parts: Sequence[tuple[Text, Part]], options: Options, *, stream: bool
    ) -> Work:
        # The prefix is what a text begins with, so not that of its later parts.
        before = [None, *(text for text, _ in parts)]
        sentences = [
            Sentence(part.ids, () if text is earlier else plan.prefix, start=self._model.start)
            for (text, part), earlier in zip(parts, before, strict=False)
        ]
        try:
            return await self._engine.submit(sentences, options, stream=stream)
        except SentenceError as error:
            raise requests.wire_error(error, parts[0][0].field) from None

    async def _aligned(self, parts: Sequence[Part], answers: Sequence[Answer]) -> list[Answer]:
        return await with_alignments(self._engine, self._model, self._detokenizer, parts, answers)

    def _judge(
        self,
        text: Text,
        part: Part,
        answer: Answer,
        way: Way,
        instead: TranslatedPart | None = None,
    ) -> TranslatedPart | Retry:
        if error := responses.failure(answer):
            raise error
        mender = Mender(
            text.text,
            self._model.planner,
            self._model.examiner,
            self._detokenizer,
            keeps_numbers=self._plan_options.keep,
            mends=self._mends,
            limited=self._options.max_tokens is not None,
        )
        return mender.judge(part, answer, way, instead)

    async def _mend(
        self, plan: Plan, judged: Sequence[tuple[Text, TranslatedPart | Retry]]
    ) -> list[list[TranslatedPart]]:
        """Try again until nothing is left to try. The ways only lead on, so this ends."""
        texts = [text for text, _ in judged]
        slots: list[list[TranslatedPart | Retry]] = [[one] for _, one in judged]
        while any(isinstance(one, Retry) for slot in slots for one in slot):
            slots = await self._once_more(plan, texts, slots)
        return [[one for one in slot if isinstance(one, TranslatedPart)] for slot in slots]

    async def _once_more(
        self,
        plan: Plan,
        texts: Sequence[Text],
        slots: Sequence[Sequence[TranslatedPart | Retry]],
    ) -> list[list[TranslatedPart | Retry]]:
        """Try all that is to be tried: one request of the engine for each way."""
        max_beam = self._model.dispatcher.engine.settings.max_beam
        answers: dict[Way, Iterator[Answer]] = {}
        for way in Way:
            again = [
                (text, part)
                for text, slot in zip(texts, slots, strict=True)
                for one in slot
                if isinstance(one, Retry) and one.way is way
                for part in one.parts
            ]
            options = options_for(way, self._options, max_beam)
            answers[way] = iter(
                await self._engine.until_there_is_room(partial(self._run, plan, again, options))
            )

        def judge(text: Text, one: TranslatedPart | Retry) -> Sequence[TranslatedPart | Retry]:
            if isinstance(one, TranslatedPart):
                return [one]
            self._model.retried(one.reason)
            return [
                self._judge(text, part, next(answers[one.way]), one.way, one.instead)
                for part in one.parts
            ]

        return await _apart(
            plan,
            lambda: [
                [new for one in slot for new in judge(text, one)]
                for text, slot in zip(texts, slots, strict=True)
            ],
        )

    def _as_it_is(self, part: Part, answer: Answer) -> TranslatedPart:
        return TranslatedPart(
            part, self._detokenizer.detokenize(part, answer.hypotheses[0]), answer
        )

    def _growing_text(self, source: str) -> GrowingText:
        return GrowingText(
            self._model.target,
            source,
            stops=self._mends,
            waits=self._detokenizer.replaces_unknown,
        )

    def _translation(
        self, plan: Plan, text: Text, done: Sequence[TranslatedPart]
    ) -> pb.Translation:
        return responses.translation(
            self._model, self._wire, self._detokenizer, plan.clock, text.text, done
        )


async def _apart(plan: Plan, work: Callable[[], T]) -> T:
    """Do work that grows with the letters of a plan, in a thread where they are many."""
    return await offload.for_letters(plan.letters, work)
