"""Translating texts: planned, handed to the engine, put together again.

texts → parts of each → a request of the engine → answers → translations
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Answer, NewToken, Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.service import convert, results
from dragoman_server.service.calls import Call
from dragoman_server.service.dispatch import INTERACTIVE, Work
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.models import ServedModel
from dragoman_server.service.results import Clock, Done
from dragoman_server.service.settings import Limits
from dragoman_server.text.pieces import TextStream
from dragoman_server.text.plan import OverlongError, Part, PlanOptions

_INLINE_LETTERS = 2000
"""Longer texts are split and tokenized in a thread, so that the event loop goes on."""


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
        self._model = model
        self._wire = options
        self._options = convert.engine_options(options, model.target, limits.max_target_tokens)
        self._call = call
        self._limits = limits
        self._queueing = queueing
        self._began = time.monotonic()
        self._prepared = self._began
        call.facts["model"] = model.name

    async def plan(self, texts: Sequence[str], fields: Sequence[str]) -> list[Text]:
        """Find the parts of texts; ``fields`` says what the wire calls each of them."""
        if sum(map(len, texts)) > _INLINE_LETTERS:
            planned = await asyncio.to_thread(self._plan, texts, fields)
        else:
            planned = self._plan(texts, fields)
        tokens = sum(len(part.ids) for text in planned for part in text.parts)
        if tokens > self._limits.max_source_tokens:
            raise InvalidArgumentError(
                fields[0].partition("[")[0],
                f"has {tokens} tokens: the limit of a request is {self._limits.max_source_tokens}",
                reason="TOO_LARGE",
            )
        self._call.count("source_tokens", tokens)
        self._prepared = time.monotonic()
        return planned

    async def translate(self, texts: Sequence[Text]) -> list[pb.Translation]:
        """All texts together: one request of the engine, or two where masks were lost."""
        parts = [(text, part) for text in texts for part in text.parts]
        tried = [
            self._restored(text, part, answer)
            for (text, part), answer in zip(parts, await self._run(parts), strict=True)
        ]
        again = [
            (text, part)
            for (text, _), one in zip(parts, tried, strict=True)
            if isinstance(one, list)
            for part in one
        ]
        mended = iter(
            self._done(part, answer)
            for (_, part), answer in zip(again, await self._run(again), strict=True)
        )
        done = iter(
            [one] if isinstance(one, Done) else [next(mended) for _ in one] for one in tried
        )
        return [
            self._translation(text, [each for _ in text.parts for each in next(done)])
            for text in texts
        ]

    async def stream(self, text: Text) -> AsyncIterator[str | pb.Translation]:
        """Text as soon as it is certain, in order; then the translation."""
        done: list[Done] = []
        reached = 0
        with self._submit([(text, part) for part in text.parts], stream=True) as work:
            in_order = _InOrder(work)
            for number, part in enumerate(text.parts):
                yield text.text[reached : part.span.start]
                reached = part.span.end
                # What is masked can't be shown before it is known that it can be restored.
                grows = None if part.masked.kept else TextStream(self._model.target)
                answer: Answer | None = None
                async for event in in_order.events(number):
                    if isinstance(event, Answer):
                        answer = event
                    elif grows is not None and event.token != self._end:
                        yield grows.add(event.token)
                assert answer is not None
                if grows is not None:
                    done.append(self._done(part, answer))
                    yield done[-1].text[grows.sent :]
                else:
                    mended = await self._mended(text, part, answer)
                    done += mended
                    yield _within(text.text, part, mended)
        yield text.text[reached:]
        yield self._translation(text, done)

    def _plan(self, texts: Sequence[str], fields: Sequence[str]) -> list[Text]:
        wire = self._wire
        options = PlanOptions(
            split_sentences=not wire.HasField("split_sentences") or wire.split_sentences,
            keep=not wire.HasField("keep_untranslatable") or wire.keep_untranslatable,
            split_overlong=wire.overlong != pb.OVERLONG_POLICY_ERROR,
        )
        planned: list[Text] = []
        for text, field in zip(texts, fields, strict=True):
            try:
                parts = self._model.planner.plan(text, options)
            except OverlongError as error:
                raise InvalidArgumentError(field, str(error), reason="SENTENCE_TOO_LONG") from None
            if wire.HasField("target_prefix") and len(parts) > 1:
                raise InvalidArgumentError(
                    "options.target_prefix", f"is for one sentence, and {field} has more"
                )
            planned.append(Text(field, text, parts))
        return planned

    async def _run(self, parts: Sequence[tuple[Text, Part]]) -> list[Answer]:
        if not parts:
            return []
        with self._submit(parts, stream=False) as work:
            return await work.answers()

    def _submit(self, parts: Sequence[tuple[Text, Part]], *, stream: bool) -> Work:
        prefix = self._model.target.encode(self._wire.target_prefix)
        try:
            return self._model.dispatcher.submit(
                [Sentence(part.ids, prefix) for _, part in parts],
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
        done = self._done(part, answer)
        restored = part.masked.restore(done.text)
        if restored is None:
            return self._model.planner.around(text.text, part)
        return Done(part, restored, answer)

    async def _mended(self, text: Text, part: Part, answer: Answer) -> list[Done]:
        tried = self._restored(text, part, answer)
        if isinstance(tried, Done):
            return [tried]
        answers = await self._run([(text, piece) for piece in tried])
        return [self._done(*each) for each in zip(tried, answers, strict=True)]

    def _done(self, part: Part, answer: Answer) -> Done:
        if error := results.failure(answer):
            raise error
        return Done(part, self._model.target.decode(answer.hypotheses[0].ids), answer)

    def _translation(self, text: Text, done: Sequence[Done]) -> pb.Translation:
        clock = Clock(self._call.began, self._prepared)
        made = results.translation(self._model, self._wire, clock, text.text, done)
        self._call.count("target_tokens", made.target_tokens)
        return made

    @property
    def _end(self) -> int:
        return self._model.bundle.manifest.special_ids.end


class _InOrder:
    """The events of several sentences, one sentence after the other; later ones are held back."""

    def __init__(self, work: Work) -> None:
        self._events = work.events()
        self._held: dict[int, deque[NewToken | Answer]] = {}

    async def events(self, sentence: int) -> AsyncIterator[NewToken | Answer]:
        held = self._held.setdefault(sentence, deque())
        while True:
            while not held:
                event = await anext(self._events)
                self._held.setdefault(event.ticket.sentence, deque()).append(event)
            event = held.popleft()
            yield event
            if isinstance(event, Answer):
                return


def _within(text: str, part: Part, done: Sequence[Done]) -> str:
    """A part's translation: its pieces, with what is between them."""
    pieces: list[str] = []
    reached = part.span.start
    for each in done:
        pieces += [text[reached : each.part.span.start], each.text]
        reached = each.part.span.end
    return "".join([*pieces, text[reached : part.span.end]])
