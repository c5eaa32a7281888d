"""Translating texts: planned, handed to the engine, put together again.

texts → parts of each → a request of the engine → answers → translations
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Answer, NewToken, Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.service import convert, offload, results
from dragoman_server.service.ahead import Ahead
from dragoman_server.service.calls import Call
from dragoman_server.service.dispatch import INTERACTIVE, Work
from dragoman_server.service.errors import InvalidArgumentError, OverloadedError
from dragoman_server.service.models import ServedModel
from dragoman_server.service.results import Clock, Done
from dragoman_server.service.settings import Limits
from dragoman_server.text.pieces import TextStream
from dragoman_server.text.plan import OverlongError, Part

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
        """All texts together: one request of the engine, or two where masks were lost."""
        parts = [(text, part) for text in texts for part in text.parts]
        answers = await self._run(parts)
        tried = await self._apart(
            lambda: [self._restored(*each, a) for each, a in zip(parts, answers, strict=True)]
        )
        again = [
            (text, part)
            for (text, _), one in zip(parts, tried, strict=True)
            if isinstance(one, list)
            for part in one
        ]
        mended = zip(again, await self._run_admitted(again), strict=True)

        def put_together() -> list[pb.Translation]:
            done = iter(
                [one] if isinstance(one, Done) else [self._done(*next(mended)) for _ in one]
                for one in tried
            )
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
            submit=lambda some: self._submit(some, stream=True),
            wait_for_room=self._model.dispatcher.wait_for_room,
        )
        with ahead:
            for number, part in enumerate(text.parts):
                yield text.text[reached : part.span.start]
                reached = part.span.end
                # What is masked can't be shown before it is known that it can be restored.
                grows = None if part.masked.kept else TextStream(self._model.target)
                while isinstance(event := await ahead.next(number), NewToken):
                    if grows is not None and event.token != self._end:
                        yield grows.add(event.token)
                if grows is not None:
                    done.append(self._done((text, part), event))
                    yield done[-1].text[grows.sent :]
                else:
                    mended = await self._mended(text, part, event)
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

    async def _run(self, parts: Sequence[tuple[Text, Part]]) -> list[Answer]:
        if not parts:
            return []
        with await self._submit(parts, stream=False) as work:
            return await work.answers()

    async def _run_admitted(self, parts: Sequence[tuple[Text, Part]]) -> list[Answer]:
        """Once more, for a request that was admitted: it is not refused, but waits for room."""
        while True:
            try:
                return await self._run(parts)
            except OverloadedError:
                await self._model.dispatcher.wait_for_room()

    async def _submit(self, parts: Sequence[tuple[Text, Part]], *, stream: bool) -> Work:
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
                self._options,
                deadline=self._call.deadline,
                priority=self._queueing.priority,
                flow=self._queueing.flow,
                stream=stream,
            )
        except SentenceError as error:
            raise convert.wire_error(error, parts[0][0].field) from None

    def _restored(self, text: Text, part: Part, answer: Answer) -> Done | list[Part]:
        """The part with what was masked; or, where a mask was lost, its pieces around them."""
        done = self._done((text, part), answer)
        restored = part.masked.restore(done.text)
        if restored is None:
            return self._model.planner.around(text.text, part)
        return Done(part, restored, answer)

    async def _mended(self, text: Text, part: Part, answer: Answer) -> list[Done]:
        tried = self._restored(text, part, answer)
        if isinstance(tried, Done):
            return [tried]
        again = [(text, piece) for piece in tried]
        return [
            self._done(*each) for each in zip(again, await self._run_admitted(again), strict=True)
        ]

    def _done(self, asked: tuple[Text, Part], answer: Answer) -> Done:
        if error := results.failure(answer):
            raise error
        return Done(asked[1], self._model.target.decode(answer.hypotheses[0].ids), answer)

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
