"""The models of a server, and which a call means: by name, by languages, or the only one."""

from collections.abc import Callable, Iterator

from dragoman_server.service.errors import (
    InvalidArgumentError,
    ModelRefusedError,
    NotAllowedError,
    NotFoundError,
)
from dragoman_server.service.models.directions import language_tag
from dragoman_server.service.models.served import ServedModel

MayUse = Callable[[str], bool]
"""Whether a client may use the model of this name."""


class Models:
    """The models of a server; filled once, when they are loaded."""

    def __init__(self) -> None:
        self._models: dict[str, ServedModel] = {}
        self._refused: set[str] = set()

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

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
        candidates = [self.get(name)] if name else list(self)
        fitting = [model for model in candidates if model.directions.suits(wanted)]
        if not fitting:
            raise NotFoundError(
                "no model translates these languages: ListModels lists the models that are loaded",
                reason="UNKNOWN_LANGUAGES",
            )
        allowed = [model for model in fitting if may_use(model.name)]
        if not allowed:
            raise NotAllowedError("this key may not use the model")
        if len(allowed) > 1 and not all(tag.language for tag in wanted):
            raise InvalidArgumentError(
                "model", "is not given, and there are several: name one, or both languages"
            )
        return max(allowed, key=lambda model: model.directions.suits(wanted))
