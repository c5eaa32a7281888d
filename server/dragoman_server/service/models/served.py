"""A model that is loaded, with what it takes to translate texts by it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dragoman_server.bundle.reading import Bundle
from dragoman_server.service.dispatch import Dispatcher
from dragoman_server.service.models.directions import Direction, Directions, language_tag
from dragoman_server.text.faults import Examiner, examiner_for
from dragoman_server.text.languages import parse
from dragoman_server.text.plan import Planner
from dragoman_server.text.vocabulary import Vocabulary


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
    warned: Callable[[str], None]
    """Counts a warning about a translation, by its code."""
    target_language: str = ""
    """Code of the language that is translated into, as ``pt``; empty until it is chosen."""
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
        wanted = language_tag("source_language", source), language_tag("target_language", target)
        chosen = self.directions.choose(wanted)
        if chosen not in self._towards:
            # What sentences and numbers look like is known by codes as pt, not por-Latn or pob.
            codes = [
                parse(name).common for name in (chosen.source_language, chosen.target_language)
            ]
            planner = replace(
                self.planner,
                language=codes[0],
                before=chosen.before,
                max_tokens=self.planner.max_tokens - len(chosen.before),
            )
            self._towards[chosen] = replace(
                self,
                planner=planner,
                examiner=examiner_for(*codes),
                target_language=codes[1],
                start=chosen.start,
            )
        return self._towards[chosen]
