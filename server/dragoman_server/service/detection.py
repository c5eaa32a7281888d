"""Which model a request means, and which language a text is in where its client does not say.

A source language of ``auto`` is detected; one that is not given is detected where that decides
between models. Where all models that would do translate from the same language, that is the one.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service import offload, requests
from dragoman_server.service.errors import InvalidArgumentError, NotFoundError
from dragoman_server.service.models.choice import MayUse, Models
from dragoman_server.service.models.served import ServedModel
from dragoman_server.text.detection import Ranked, detector
from dragoman_server.text.languages import parse
from dragoman_server.text.markup.tokens import text_alone

AUTO = "auto"
"""What clients give as a source language that is to be detected."""

_SHARED_LETTERS = 100
"""Letters of each text that count when all texts of a request are looked at together."""


class Selection(Protocol):
    """The fields of a request that choose a model."""

    source_language: str
    target_language: str
    model: str


@dataclass(frozen=True)
class Chosen:
    """The model for a text."""

    model: ServedModel
    """The model, told which languages are wanted."""
    detected: pb.DetectedLanguage | None = None
    """The language that the text was taken to be in; None where it was not detected."""

    def mark(self, translation: pb.Translation) -> pb.Translation:
        """Say in a translation which language was detected, and return it."""
        if self.detected is not None:
            translation.detected_language.CopyFrom(self.detected)
        return translation


class Detection:
    """Chooses models by the languages of texts."""

    def __init__(self, models: Models, min_lead: float) -> None:
        """``min_lead`` is by how much a language has to be more likely than all others."""
        self._models = models
        self._min_lead = min_lead

    async def detect(self, texts: Sequence[str], may_use: MayUse) -> pb.DetectResponse:
        """Return the languages that texts may be in, of those that a client may translate from."""
        models = [model for model in self._models if may_use(model.name)]
        sources = _sources(models)
        ranked = await self._rank(models, texts)
        return pb.DetectResponse(
            detections=[
                pb.Detection(languages=[_wire(each) for each in some if each.language in sources])
                for some in ranked
            ]
        )

    async def choose(
        self, request: Selection, texts: Sequence[str], fields: Sequence[str], may_use: MayUse
    ) -> list[Chosen]:
        """Return the model for each text of a request; ``fields`` are the texts' names on the wire.

        Raises ``InvalidArgumentError`` where a language can't be told.
        """
        source, target = request.source_language, request.target_language
        is_auto = source.lower() == AUTO
        if source and not is_auto:
            return [Chosen(self._find(request, source, may_use))] * len(texts)
        models = self._models.fitting(request.model, "", target, may_use)
        sources = _sources(models)
        if not sources or (not is_auto and 1 in (len(models), len(sources))):
            only = sources[0] if len(models) > 1 and sources else ""
            return [Chosen(self._find(request, only, may_use))] * len(texts)
        every = self._models.fitting(request.model, "", "", may_use)
        texts = await _read(request, texts)
        codes = {parse(name).common for name in sources}
        # One model may have pt, and another pt-BR: they are ranked as one.
        sources = [name for name in _languages(every) if parse(name).common in codes]
        ranked = await self._rank(every, texts)
        if len(_sources(every)) == 1:  # whatever it looks like, there is no other
            found: list[str | None] = [sources[0]] * len(texts)
        else:
            found = [self._certain(some, sources) for some in ranked]
        if len(texts) > 1 and None in found:  # what one text does not tell, all of them may
            together = "\n".join(text[:_SHARED_LETTERS] for text in texts)
            shared = self._certain((await self._rank(every, [together]))[0], sources)
            found = [
                each or (None if self._leads(some) else shared)
                for each, some in zip(found, ranked, strict=True)
            ]
        chosen: list[Chosen] = []
        for best, some, field in zip(found, ranked, fields, strict=True):
            if best is None:
                raise self._uncertain(field, some, sources)
            confidence = next(each.confidence for each in some if each.language == best)
            detected = pb.DetectedLanguage(language=best, confidence=confidence)
            chosen.append(Chosen(self._find(request, best, may_use), detected))
        return chosen

    def _find(self, request: Selection, source: str, may_use: MayUse) -> ServedModel:
        target = request.target_language
        return self._models.find(request.model, source, target, may_use).towards(source, target)

    def _certain(self, ranked: Sequence[Ranked], sources: Sequence[str]) -> str | None:
        """Return the language to translate from; None where it is not certain enough."""
        if self._leads(ranked):
            return ranked[0].language if ranked[0].language in sources else None
        # Without letters there is nothing to translate: any language will do.
        return None if ranked[0].confidence else sources[0]

    def _leads(self, ranked: Sequence[Ranked]) -> bool:
        """Whether the first language is likely enough, compared with the second."""
        second = ranked[1].confidence if len(ranked) > 1 else 0.0
        return bool(ranked[0].confidence) and ranked[0].confidence - second >= self._min_lead

    def _uncertain(
        self, field: str, ranked: Sequence[Ranked], sources: Sequence[str]
    ) -> InvalidArgumentError | NotFoundError:
        if self._leads(ranked):
            return NotFoundError(
                f"{field} seems to be in {ranked[0].language}, from which no model translates "
                "into this target language: name the source language if it is another",
                reason="UNKNOWN_LANGUAGES",
            )
        likely = " or ".join([each.language for each in ranked if each.language in sources][:2])
        return InvalidArgumentError(
            "source_language",
            f"can't be told from {field}, which may be {likely}: name it",
            reason="LANGUAGE_UNCERTAIN",
        )

    async def _rank(
        self, models: Sequence[ServedModel], texts: Sequence[str]
    ) -> list[list[Ranked]]:
        """Rank all languages that models know: what is none of a source is to be noticed too."""
        found = detector(_languages(models))
        return await asyncio.to_thread(lambda: [found.rank(text) for text in texts])


async def _read(request: Selection, texts: Sequence[str]) -> Sequence[str]:
    """Return texts without the markup that they have: names of tags are in no language."""
    options = getattr(request, "options", None)
    syntax = requests.SYNTAXES.get(options.markup) if options else None
    if syntax is None:
        return texts
    letters = sum(map(len, texts))
    return await offload.for_letters(letters, lambda: [text_alone(each, syntax) for each in texts])


def _sources(models: Sequence[ServedModel]) -> list[str]:
    return _distinct([name for model in models for name in model.directions.source_languages])


def _languages(models: Sequence[ServedModel]) -> list[str]:
    """Return all languages of models, those that they translate from first."""
    targets = [name for model in models for name in model.directions.target_languages]
    return _distinct([*_sources(models), *targets])


def _distinct(names: Sequence[str]) -> list[str]:
    """Return tags of different languages: of pt and pt-BR, the first."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(parse(name).common, name)
    return list(found.values())


def _wire(ranked: Ranked) -> pb.DetectedLanguage:
    return pb.DetectedLanguage(language=ranked.language, confidence=ranked.confidence)
