"""Translating texts: planned, handed to the engine, put together again.

texts → parts of each → a request of the engine → answers → translations
"""

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Answer, NewToken, Options, Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.grpc_api.calls import Call
from dragoman_server.service import convert, offload, results
from dragoman_server.service.dispatch import INTERACTIVE, Work
from dragoman_server.service.errors import InvalidArgumentError, OverloadedError
from dragoman_server.service.mending import Mender, Retry, Way, options_for
from dragoman_server.service.models import ServedModel
from dragoman_server.service.results import Clock, Done
from dragoman_server.service.settings import Limits
from dragoman_server.service.stream_window import Ahead
from dragoman_server.text.plan import OverlongError, Part
from dragoman_server.text.streaming import GrowingText

T = TypeVar("T")


@dataclass(frozen=True)
class Text:
    """A text of a request, planned."""

    field: str
    """What the wire calls it."""
    text: str
    parts: list[Part]


@dataclass(frozen=True)
class Queueing:
    """How the engine is to treat a request among others."""

    priority: int = INTERACTIVE
    flow: int | None = None


ALONE = Queueing()


class Job:
    """Texts of one call, with the same options, for one model."""

    def __init__(
        self,
        model: ServedModel,
        options: pb.Options,
        call: Call,
        limits: Limits,
        queueing: Queueing = ALONE,
    ) -> None:
        self._began = self._prepared = time.monotonic()
        self._model = model
        self._wire = options
        self._options = convert.engine_options(options, model.target, limits.max_target_tokens)
        self._plan_options = convert.plan_options(options)
        self._mends = not options.HasField("mend") or options.mend
        self._prefix: tuple[int, ...] = ()
        self._letters = 0
        self._call = call
        self._limits = limits
        self._queueing = queueing
        call.facts["model"] = model.name

    async def plan(self, texts: Sequence[str], fields: Sequence[str]) -> list[Text]:
        """Find the parts of texts; ``fields`` says what the wire calls each of them."""
        self._letters = sum(map(len, texts)) + len(self._wire.target_prefix)
        planned = await self._apart(lambda: self._plan(texts, fields))
        tokens = sum(len(part.ids) for text in planned for part in text.parts)
        self._call.count("source_tokens", tokens)
        self._prepared = time.monotonic()
        return planned

    async def translate(self, texts: Sequence[Text]) -> list[pb.Translation]:
        """All texts together: one request of the engine, and more where something went wrong."""
        parts = [(text, part) for text in texts for part in text.parts]
        answers = await self._run(parts, self._options)
        judged = await self._apart(
            lambda: [
                (text, self._judge(text, part, answer, Way.FIRST))
                for (text, part), answer in zip(parts, answers, strict=True)
            ]
        )
        mended = await self._mend(judged)

        def put_together() -> list[pb.Translation]:
            done = iter(mended)
            return [
                self._translation(text, [each for _ in text.parts for each in next(done)])
                for text in texts
            ]

        made = await self._apart(put_together)
        self._call.count("target_tokens", sum(translation.target_tokens for translation in made))
        return made

    async def stream(self, text: Text) -> AsyncGenerator[str | pb.Translation, None]:
        """Text as soon as it is certain, in order; then the translation."""
        done: list[Done] = []
        reached = 0
        ahead = Ahead(
            [(text, part) for part in text.parts],
            self._limits.stream_window,
            submit=lambda some: self._submit(some, self._options, stream=True),
            wait_for_room=self._model.dispatcher.wait_for_room,
        )
        with ahead:
            for number, part in enumerate(text.parts):
                yield text.text[reached : part.span.start]
                reached = part.span.end
                source = part.span.of(text.text)
                # What may be done again can't be shown before it is known that it need not be.
                has_numbers = self._mends and any(map(str.isdigit, source))
                held = bool(part.masked.kept) or has_numbers
                grows = None if held else GrowingText(self._model.target, source, self._mends)
                while isinstance(event := await ahead.next(number), NewToken):
                    if grows is not None and event.token != self._end:
                        yield grows.add(event.token)
                judged = self._judge(text, part, event, Way.FIRST)
                if grows is not None and grows.sent:
                    whole = self._done(part, event)
                    done.append(replace(whole, text=grows.ended(whole.text)))
                    yield done[-1].text[grows.sent :]
                else:
                    (mended,) = await self._mend([(text, judged)])
                    done += mended
                    yield _within(text.text, part, mended)
        yield text.text[reached:]
        made = await self._apart(lambda: self._translation(text, done))
        self._call.count("target_tokens", made.target_tokens)
        yield made

    async def _apart(self, work: Callable[[], T]) -> T:
        return await offload.for_letters(self._letters, work)

    def _plan(self, texts: Sequence[str], fields: Sequence[str]) -> list[Text]:
        # Before anything that takes longer: splitting is far more work than tokenizing.
        convert.check_tokens(
            fields[0].partition("[")[0],
            sum(map(len, self._model.source.encode_all(texts))),
            self._limits.max_source_tokens,
        )
        self._prefix = self._model.target.encode(self._wire.target_prefix)
        planned: list[Text] = []
        for text, field in zip(texts, fields, strict=True):
            try:
                parts = self._model.planner.plan(text, self._plan_options)
            except OverlongError as error:
                raise InvalidArgumentError(field, str(error), reason="SENTENCE_TOO_LONG") from None
            if self._prefix and len(parts) > 1:
                raise InvalidArgumentError(
                    "options.target_prefix", f"is for one sentence, and {field} has more"
                )
            planned.append(Text(field, text, parts))
        return planned

    async def _run(self, parts: Sequence[tuple[Text, Part]], options: Options) -> list[Answer]:
        if not parts:
            return []
        with await self._submit(parts, options, stream=False) as work:
            return await work.answers()

    async def _run_admitted(
        self, parts: Sequence[tuple[Text, Part]], options: Options
    ) -> list[Answer]:
        """Once more, for a request that was admitted: it is not refused, but waits for room."""
        while True:
            try:
                return await self._run(parts, options)
            except OverloadedError:
                await self._model.dispatcher.wait_for_room()

    async def _submit(
        self, parts: Sequence[tuple[Text, Part]], options: Options, *, stream: bool
    ) -> Work:
        # The prefix is what a text begins with, so not that of its later pieces.
        before = [None, *(text for text, _ in parts)]
        try:
            return await self._model.dispatcher.submit(
                [
                    Sentence(
                        part.ids,
                        () if text is earlier else self._prefix,
                        start=self._model.start,
                    )
                    for (text, part), earlier in zip(parts, before, strict=False)
                ],
                options,
                deadline=self._call.deadline,
                priority=self._queueing.priority,
                flow=self._queueing.flow,
                stream=stream,
            )
        except SentenceError as error:
            raise convert.wire_error(error, parts[0][0].field) from None

    def _judge(self, text: Text, part: Part, answer: Answer, way: Way) -> Done | Retry:
        if error := results.failure(answer):
            raise error
        mender = Mender(
            text.text,
            self._model.planner,
            self._model.examiner,
            self._model.target,
            keeps_numbers=self._plan_options.keep,
            mends=self._mends,
            limited=self._options.max_tokens is not None,
        )
        return mender.judge(part, answer, way)

    async def _mend(self, judged: Sequence[tuple[Text, Done | Retry]]) -> list[list[Done]]:
        """Try again until nothing is left to try. The ways only lead on, so this ends."""
        texts = [text for text, _ in judged]
        slots: list[list[Done | Retry]] = [[one] for _, one in judged]
        while any(isinstance(one, Retry) for slot in slots for one in slot):
            slots = await self._once_more(texts, slots)
        return [[one for one in slot if isinstance(one, Done)] for slot in slots]

    async def _once_more(
        self, texts: Sequence[Text], slots: Sequence[Sequence[Done | Retry]]
    ) -> list[list[Done | Retry]]:
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
            answers[way] = iter(await self._run_admitted(again, options))

        def judge(text: Text, one: Done | Retry) -> Sequence[Done | Retry]:
            if isinstance(one, Done):
                return [one]
            self._model.retried(one.reason)
            return [self._judge(text, part, next(answers[one.way]), one.way) for part in one.parts]

        return await self._apart(
            lambda: [
                [new for one in slot for new in judge(text, one)]
                for text, slot in zip(texts, slots, strict=True)
            ]
        )

    def _done(self, part: Part, answer: Answer) -> Done:
        return Done(part, self._model.target.decode(answer.hypotheses[0].ids), answer)

    def _translation(self, text: Text, done: Sequence[Done]) -> pb.Translation:
        clock = Clock(self._began, self._prepared)
        return results.translation(self._model, self._wire, clock, text.text, done)

    @property
    def _end(self) -> int:
        return self._model.bundle.manifest.special_ids.end


def _within(text: str, part: Part, done: Sequence[Done]) -> str:
    """A part's translation: its pieces, with what is between them."""
    pieces: list[str] = []
    reached = part.span.start
    for each in done:
        pieces += [text[reached : each.part.span.start], each.text]
        reached = each.part.span.end
    return "".join([*pieces, text[reached : part.span.end]])
