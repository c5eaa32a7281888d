"""Translating texts: planned, handed to the engine, put together again.

texts → parts of each → a request of the engine → answers → translations
"""

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import NewToken
from dragoman_server.service import offload, requests, responses
from dragoman_server.service.calls import Call
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.glossaries.choice import glossary_for
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.settings import Limits
from dragoman_server.service.translation.attempts import Attempts, apart
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.service.translation.engine_calls import ALONE, EngineCalls, Queueing
from dragoman_server.service.translation.mending import TranslatedPart
from dragoman_server.service.translation.planned import Clock, Plan, Text
from dragoman_server.service.translation.stream_window import StreamWindow
from dragoman_server.text.faults import Fault
from dragoman_server.text.gaps import gap_between
from dragoman_server.text.markup.document import Document
from dragoman_server.text.markup.tokens import MalformedError
from dragoman_server.text.plan import OverlongError, join
from dragoman_server.text.segments import Span
from dragoman_server.text.streaming import GrowingText

_MAX_LETTER_TOKENS = 33
"""Most tokens of a letter: a byte each of what NFKC makes of it, which is most for U+FDFA."""


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
        wanted = requests.wanted(options, model.target, limits.max_target_tokens)
        self._plan_options = wanted.plan
        self._markup = wanted.markup
        self._glossary = glossary_for(options, limits.max_glossary_entries, model, call)
        self._mends = wanted.mends
        self._detokenizer = Detokenizer(model.source, model.target, wanted.replaces_unknown)
        self._call = call
        self._limits = limits
        self._attempts = Attempts(
            model,
            wanted.engine,
            EngineCalls(model.dispatcher, call.deadline, queueing),
            self._detokenizer,
            keeps_numbers=self._plan_options.keep,
            mends=self._mends,
        )
        call.facts["model"] = model.name

    async def plan(self, texts: Sequence[str], fields: Sequence[str]) -> Plan:
        """Find the parts of texts; ``fields`` has the name of each text's field on the wire."""
        letters = sum(map(len, texts)) + len(self._wire.target_prefix)
        planned, prefix = await offload.for_letters(letters, lambda: self._plan(texts, fields))
        self._call.count("source_tokens", sum(len(p.ids) for text in planned for p in text.parts))
        return Plan(planned, prefix, letters, Clock(self._began, time.monotonic()))

    async def translate(self, plan: Plan) -> list[pb.Translation]:
        """Translate all texts."""
        parts = [(text, part) for text in plan.texts for part in text.parts]
        translated = await self._attempts.translated(plan, parts)

        def put_together() -> list[pb.Translation]:
            done = iter(translated)
            return [
                self._translation(plan, text, [each for _ in text.parts for each in next(done)])
                for text in plan.texts
            ]

        made = await apart(plan, put_together)
        self._call.count("target_tokens", sum(translation.target_tokens for translation in made))
        return made

    async def stream(self, plan: Plan) -> AsyncGenerator[str | pb.Translation, None]:
        """Yield the text of the only translation as soon as it is certain; then the whole of it."""
        (text,) = plan.texts
        language = self._model.target_language
        writer = text.writer(language)
        done: list[TranslatedPart] = []
        reached = 0  # up to here, the text and its translation are sent
        window = StreamWindow(
            [(text, part) for part in text.parts],
            self._limits.stream_window,
            submit=lambda some: self._attempts.submit(plan, some),
            wait_for_room=self._model.dispatcher.wait_for_room,
        )
        with window:
            for number, part in enumerate(text.parts):
                source = part.span.of(text.text)
                # What may be done again can't be shown before it is known that it need not be.
                has_numbers = self._mends and any(map(str.isdigit, source))
                held = bool(part.masked.kept or part.masked.in_capitals or has_numbers or writer)
                grows = None if held else self._growing_text(source)
                before = done[-1].text if done else None
                if grows is not None:
                    yield gap_between(text.text, reached, part.span.start, before, language)
                    reached, before = part.span.start, None
                while isinstance(event := await window.next(number), NewToken):
                    if grows is not None and event.token != self._model.end:
                        yield grows.add(event.token)
                (event,) = await self._attempts.aligned([part], [event])
                if error := responses.failure(event):
                    raise error
                if grows is not None and grows.sent:
                    whole = self._detokenizer.detokenize(part, event.hypotheses[0])
                    shown = grows.ended(whole)
                    fault = None if shown == whole else Fault.LOOP
                    done.append(TranslatedPart(part, shown, event, fault=fault))
                    yield shown[grows.sent :]
                    reached = part.span.end
                    continue
                mended = await self._attempts.mended(plan, text, part, event)
                done += mended
                if writer:
                    for each in mended:
                        yield writer.add(each.part.span, each.text, each.tags)
                    continue
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
        if writer:
            yield writer.end()
        else:
            before = done[-1].text if done else None
            yield gap_between(text.text, reached, len(text.text), before, language)
        made = await apart(plan, lambda: self._translation(plan, text, done))
        self._call.count("target_tokens", made.target_tokens)
        yield made

    def _plan(
        self, texts: Sequence[str], fields: Sequence[str]
    ) -> tuple[list[Text], tuple[int, ...]]:
        """Return the texts taken apart, and the tokens that their translations begin with."""
        if self._markup is not None:
            requests.check_tags(fields[0].partition("[")[0], texts, self._limits.max_tags)
        read = [self._read(text, field) for text, field in zip(texts, fields, strict=True)]
        # Before anything that takes longer: splitting is far more work than tokenizing.
        max_tokens = self._limits.max_source_tokens
        if _MAX_LETTER_TOKENS * sum(len(text.text) for text in read) + len(read) > max_tokens:
            tokens = sum(map(len, self._model.source.encode_all([text.text for text in read])))
            requests.check_tokens(fields[0].partition("[")[0], tokens, max_tokens)
        wanted = self._wire.target_prefix
        prefix = self._model.target.encode(wanted) if wanted else ()
        planned: list[Text] = []
        for text in read:
            kept = text.document.kept if text.document else ()
            terms = text.expected
            try:
                parts = self._model.planner.plan(text.text, self._plan_options, kept, terms)
            except OverlongError as error:
                raise InvalidArgumentError(
                    text.field, str(error), reason="SENTENCE_TOO_LONG"
                ) from None
            if prefix and len(parts) > 1:
                raise InvalidArgumentError(
                    "options.target_prefix", f"is for one sentence, and {text.field} has more"
                )
            planned.append(replace(text, parts=parts))
        return planned, prefix

    def _read(self, text: str, field: str) -> Text:
        """Return a text with its markup and the terms in it, as the request asks for."""
        if self._markup is None and self._glossary is None:
            return Text(field, text)
        try:
            document = Document(text, self._markup)
        except MalformedError as error:
            raise InvalidArgumentError(field, str(error), reason="MALFORMED_MARKUP") from None
        found = (
            self._glossary.find(document.plain, self._model.target_language)
            if self._glossary
            else ()
        )
        return Text(field, document.plain, document=document, terms=found)

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
        made = responses.translation(
            self._model, self._wire, self._detokenizer, plan.clock, text, done
        )
        for warning in made.warnings:
            self._model.warned(responses.code_of(warning))
        return made
