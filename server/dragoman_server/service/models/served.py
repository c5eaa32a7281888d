"""The models of a server, and which of them a call means."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from dragoman_server.bundle.reading import Bundle
from dragoman_server.service.dispatch import Dispatcher
from dragoman_server.service.errors import (
    InvalidArgumentError,
    ModelRefusedError,
    NotAllowedError,
    NotFoundError,
)
from dragoman_server.service.models.directions import Direction, Directions
from dragoman_server.text.faults import Examiner, examiner_for
from dragoman_server.text.languages import Tag, parse
from dragoman_server.text.plan import Planner
from dragoman_server.text.vocabulary import Vocabulary

MayUse = Callable[[str], bool]
"""Whether a client may use the model of this name."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model, with what it takes to translate texts by it."""

    bundle: Bundle
    dispatcher: Dispatcher
    source: Vocabulary
    target: Vocabulary
    planner: Planner
    examiner: Examiner
    """What finds the faults of the model's translations."""
    directions: Directions
    retried: Callable[[str], None]
    """Counts a sentence that is translated again, by what was wrong."""
    start: tuple[int, ...] = ()
    """Tokens that decoding begins with, and that are no part of a translation."""
    _towards: dict[Direction, "ServedModel"] = field(default_factory=dict)
    """The model for each direction that was asked for: at most as many as it has."""

    @property
    def name(self) -> str:
        return self.bundle.manifest.name

    @property
    def end(self) -> int:
        """The id of the end token."""
        return self.bundle.manifest.special_ids.end

    def towards(self, source: str, target: str) -> "ServedModel":
        """Return the same model, told which languages are wanted."""
        wanted = _tag("source_language", source), _tag("target_language", target)
        chosen = self.directions.choose(wanted)
        if chosen not in self._towards:
            planner = replace(
                self.planner,
                language=chosen.source_language,
                before=chosen.before,
                max_tokens=self.planner.max_tokens - len(chosen.before),
            )
            self._towards[chosen] = replace(
                self,
                planner=planner,
                examiner=examiner_for(chosen.source_language, chosen.target_language),
                start=chosen.start,
            )
        return self._towards[chosen]


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
        wanted = _tag("source_language", source), _tag("target_language", target)
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


def _tag(field: str, tag: str) -> Tag:
    try:
        return parse(tag)
    except ValueError:
        raise InvalidArgumentError(field, "is not a language tag, as en, por or pt-BR") from None
