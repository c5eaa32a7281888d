"""Attempts at the parts of a request: run by the engine, judged, and run again in another way."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TypeVar

from dragoman_server.engine.core import Answer, Options, Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.service import offload, requests, responses
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.translation.alignments import with_alignments
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.service.translation.engine_calls import EngineCalls
from dragoman_server.service.translation.mending import (
    Mender,
    Retry,
    TranslatedPart,
    Way,
    options_for,
)
from dragoman_server.service.translation.planned import Plan, Text
from dragoman_server.service.translation.tagging import tagged
from dragoman_server.service.work import Work
from dragoman_server.text.plan import Part

T = TypeVar("T")


class Attempts:
    """Runs parts of texts with the options of one request, until nothing is left to be tried."""

    def __init__(
        self,
        model: ServedModel,
        options: Options,
        engine: EngineCalls,
        detokenizer: Detokenizer,
        *,
        keeps_numbers: bool,
        mends: bool,
    ) -> None:
        self._model = model
        self._options = options
        self._engine = engine
        self._detokenizer = detokenizer
        self._keeps_numbers = keeps_numbers
        self._mends = mends

    async def translated(
        self, plan: Plan, parts: Sequence[tuple[Text, Part]]
    ) -> list[list[TranslatedPart]]:
        """Translate parts: one request of the engine, and more where something went wrong."""
        answers = await self._run(plan, parts, self._options)
        judged = await apart(
            plan,
            lambda: [
                (text, self._judge(text, part, answer, Way.FIRST))
                for (text, part), answer in zip(parts, answers, strict=True)
            ],
        )
        mended = await self._mend(plan, judged)
        return await self._tagged(plan, [text for text, _ in parts], mended)

    async def submit(
        self, plan: Plan, parts: Sequence[tuple[Text, Part]], *, stream: bool = True
    ) -> Work:
        """Queue parts as a request of the engine."""
        return await self._submit(plan, parts, self._options, stream=stream)

    async def mended(
        self, plan: Plan, text: Text, part: Part, answer: Answer
    ) -> list[TranslatedPart]:
        """Return what a part comes to, given the answer of the first attempt."""
        judged = self._judge(text, part, answer, Way.FIRST)
        mended = await self._mend(plan, [(text, judged)])
        (done,) = await self._tagged(plan, [text], mended)
        return done

    async def aligned(self, parts: Sequence[Part], answers: Sequence[Answer]) -> list[Answer]:
        """Return answers of parts with all alignments that their text takes."""
        return await with_alignments(self._engine, self._model, self._detokenizer, parts, answers)

    async def _run(
        self, plan: Plan, parts: Sequence[tuple[Text, Part]], options: Options
    ) -> list[Answer]:
        # Alignments cost a little, and few parts need one.
        tags = [text.has_tags(part) for text, part in parts]
        chosen = [
            [number for number, has_tags in enumerate(tags) if has_tags is wanted]
            for wanted in (False, True)
        ]
        answers: dict[int, Answer] = {}
        with ExitStack() as stack:
            works: list[tuple[list[int], Work]] = []
            for numbers in filter(None, chosen):
                some = [parts[number] for number in numbers]
                work = await self._submit(plan, some, options, stream=False)
                works.append((numbers, stack.enter_context(work)))
            for numbers, work in works:
                answers |= zip(numbers, await work.answers(), strict=True)
        in_order = [answers[number] for number in range(len(parts))]
        return await self.aligned([part for _, part in parts], in_order)

    async def _submit(
        self, plan: Plan, parts: Sequence[tuple[Text, Part]], options: Options, *, stream: bool
    ) -> Work:
        # The prefix is what a text begins with, so not that of its later parts.
        before = [None, *(text for text, _ in parts)]
        sentences = [
            Sentence(part.ids, () if text is earlier else plan.prefix, start=self._model.start)
            for (text, part), earlier in zip(parts, before, strict=False)
        ]
        if any(text.has_tags(part) for text, part in parts):
            options = replace(options, alignment=True)
        try:
            return await self._engine.submit(sentences, options, stream=stream)
        except SentenceError as error:
            raise requests.wire_error(error, parts[0][0].field) from None

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
            keeps_numbers=self._keeps_numbers,
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

        return await apart(
            plan,
            lambda: [
                [new for one in slot for new in judge(text, one)]
                for text, slot in zip(texts, slots, strict=True)
            ],
        )

    async def _tagged(
        self, plan: Plan, texts: Sequence[Text], slots: list[list[TranslatedPart]]
    ) -> list[list[TranslatedPart]]:
        """Place the tags of translated parts; where that fails, translate what is between them."""
        if not any(text.document for text in texts):
            return slots
        placed = await apart(
            plan,
            lambda: [
                [tagged(text, one, self._detokenizer, self._model.planner) for one in slot]
                for text, slot in zip(texts, slots, strict=True)
            ],
        )
        flat = [(text, one) for text, slot in zip(texts, placed, strict=True) for one in slot]
        mended = iter(await self._mend(plan, flat))
        return [[each for _ in slot for each in next(mended)] for slot in placed]


async def apart(plan: Plan, work: Callable[[], T]) -> T:
    """Do work that grows with the letters of a plan, in a thread where they are many."""
    return await offload.for_letters(plan.letters, work)
