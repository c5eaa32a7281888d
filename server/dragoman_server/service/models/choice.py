"""The models of a server, and which a call means: by name, by languages, or the only one."""

from collections.abc import Callable, Iterator, Sequence

from dragoman_server.service.errors import (
    InvalidArgumentError,
    ModelRefusedError,
    NotAllowedError,
    NotFoundError,
)
from dragoman_server.service.models.directions import language_tag, listed
from dragoman_server.service.models.served import ServedModel
from dragoman_server.text.languages import Tag

MayUse = Callable[[str], bool]
"""Whether a client may use the model of this name."""


class Models:
    """The models of a server; filled once, when they are loaded."""

    def __init__(self) -> None:
        self._models: dict[str, ServedModel] = {}
        self._refused: set[str] = set()

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    @property
    def names(self) -> set[str]:
        """Names of all models, those included that could not be loaded."""
        return {*self._models, *self._refused}

    def add(self, model: ServedModel) -> None:
        self._models[model.name] = model

    def refuse(self, name: str) -> None:
        """Take note of a model that was to be here and could not be loaded."""
        self._refused.add(name)

    def get(self, name: str) -> ServedModel:
        if name in self._refused:
            raise ModelRefusedError("this model's bundle was refused when the server started")
        if name not in self._models:
            raise NotFoundError("no such model: ListModels lists the models that are loaded")
        return self._models[name]

    def find(self, name: str, source: str, target: str, may_use: MayUse) -> ServedModel:
        """Return a model by name, by languages, or the only one; all that is given has to fit."""
        wanted = language_tag("source_language", source), language_tag("target_language", target)
        allowed = self.fitting(name, source, target, may_use)
        if len(allowed) > 1 and not all(tag.language for tag in wanted):
            raise InvalidArgumentError(
                "model", "is not given, and there are several: name one, or both languages"
            )
        return max(allowed, key=lambda model: model.directions.suits(wanted))

    def fitting(self, name: str, source: str, target: str, may_use: MayUse) -> list[ServedModel]:
        """Return all models that suit; raise where there are none that a client may use."""
        wanted = language_tag("source_language", source), language_tag("target_language", target)
        candidates = [self.get(name)] if name else list(self)
        fitting = [model for model in candidates if model.directions.suits(wanted)]
        if not fitting:
            raise _unknown_languages([m for m in candidates if may_use(m.name)], wanted)
        allowed = [model for model in fitting if may_use(model.name)]
        if not allowed:
            raise NotAllowedError("this key may not use the model")
        return allowed


def _unknown_languages(models: Sequence[ServedModel], wanted: tuple[Tag, Tag]) -> NotFoundError:
    """Return an error that lists the languages there are, of models that a client may use."""
    reading = [model for model in models if model.directions.reads(wanted)]
    if not reading:
        what = "from this source language"
        there = [name for model in models for name in model.directions.source_languages]
    else:
        what = "into this target language"
        there = [name for model in reading for name in model.directions.target_languages]
        if wanted[0].language:
            what = f"from this source language {what}"
    languages = listed(dict.fromkeys(there))
    return NotFoundError(
        f"no model translates {what}"
        + (f"; there {'is' if len(set(there)) == 1 else 'are'} {languages}" if there else "")
        + ": ListModels lists the models that are loaded",
        reason="UNKNOWN_LANGUAGES",
    )
