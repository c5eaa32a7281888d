"""Sequence-level distillation: training text whose targets are teachers' translations.

A small model learns more from what larger models would say than from what people said: there are
fewer ways to say it, and none that the source does not call for (Kim and Rush 2016). The right
translation is known, so of the teachers' best the one nearest to it is taken, and their mistakes
are not taught.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType

from sacrebleu.metrics.chrf import CHRF

from dragoman_export.errors import ExportError
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.core import Answer, Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Pending, Translator
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.models.directions import Direction, Directions
from dragoman_server.text.languages import Tag, likeness, parse
from dragoman_server.text.vocabulary_file import load_vocabularies
from dragoman_training.corpus import Pair

_CHUNK = 2048
_IN_FLIGHT = 2
"""Chunks: while one is written, the next is translated."""


@dataclass
class DistilReport:
    lines: int = 0
    kept: int = 0
    """Whose target stayed as it was: blank, longer than a teacher takes, or not met well enough."""


class Teacher:
    """A bundle that translates text in one direction, a sentence each, as a context manager.

    Text becomes ids as in the server: by the bundle's own vocabularies, and with the tokens of the
    languages. Raises ``ExportError`` where a language has to be chosen, or can't be.
    """

    def __init__(self, path: Path, source_language: str = "", target_language: str = "") -> None:
        bundle = read_bundle(path)
        self._direction = _direction(path, bundle.manifest, source_language, target_language)
        self._source, self._target = load_vocabularies(bundle)
        self._max_source_tokens = bundle.manifest.max_source_tokens - 1
        self._translator = Translator(
            bundle, EngineSettings(max_waiting_sentences=(_IN_FLIGHT + 1) * _CHUNK)
        )

    @property
    def languages(self) -> tuple[str, str]:
        """Tags of the languages that are translated from and into, as the manifest has them."""
        return self._direction.source_language, self._direction.target_language

    def __enter__(self) -> "Teacher":
        self._translator.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._translator.__exit__(kind, error, trace)

    def submit(self, texts: Sequence[str], options: Options) -> "_Work":
        """Begin to translate the texts that are not blank, and not longer than the model takes."""
        ids = self._source.encode_all(texts)
        before, start = self._direction.before, self._direction.start
        fits = [
            n for n, own in enumerate(ids) if 0 < len(own) <= self._max_source_tokens - len(before)
        ]
        if not fits:
            return _Work(len(texts), [], None)
        sentences = [Sentence((*before, *ids[n]), start=start) for n in fits]
        return _Work(len(texts), fits, self._translator.submit(sentences, options))

    def texts(self, work: "_Work") -> list[list[str]]:
        """The best translations of each text, best first; none for one that does not fit."""
        found: list[list[str]] = [[] for _ in range(work.texts)]
        answers: list[Answer] = work.pending.result() if work.pending else []
        for number, answer in zip(work.fits, answers, strict=True):
            if answer.failure:
                raise ExportError(f"a teacher failed to translate: {answer.failure.value}")
            # Decoded to one line each, as in the server: a break would shift all lines after it.
            found[number] = [self._target.decode(h.ids) for h in answer.hypotheses]
        return found


@dataclass(frozen=True)
class _Work:
    texts: int
    fits: list[int]
    """Numbers of the texts that were submitted."""
    pending: Pending | None


def _direction(path: Path, manifest: Manifest, source: str, target: str) -> Direction:
    """Return the direction that these languages mean; an empty one is for the bundle to know."""
    wanted = _tag(source, "source"), _tag(target, "target")
    directions = Directions(manifest)
    if not directions.suits(wanted):
        raise ExportError(
            f"{path}: does not translate"
            + (f" from {source}" if source else "")
            + (f" into {target}" if target else "")
        )
    try:
        return directions.choose(wanted)
    except InvalidArgumentError as error:
        side, of_side = (
            ("source", "from") if error.field == "source_language" else ("target", "into")
        )
        count = len(manifest.source_languages if side == "source" else manifest.target_languages)
        raise ExportError(
            f"{path}: translates {of_side} {count} languages: choose one with --{side}-language"
        ) from None


def _tag(language: str, side: str) -> Tag:
    try:
        return parse(language)
    except ValueError:
        raise ExportError(
            f"--{side}-language {language}: not a language tag, as en, por or pt-BR"
        ) from None


def distil(
    bundles: Sequence[Path],
    pairs: Iterable[Pair],
    write: Callable[[str], object],
    *,
    beam: int,
    min_chrf: float = 0.0,
    source_language: str = "",
    target_language: str = "",
    watch: Callable[[int], None],
) -> DistilReport:
    """Write a target for each pair, in order.

    The right translation stays where no teacher's has at least so much chrF against it. Languages
    have to be given where a bundle has several.
    """
    report = DistilReport()
    with ExitStack() as stack:
        teachers = [
            stack.enter_context(Teacher(path, source_language, target_language)) for path in bundles
        ]
        for path, teacher in zip(bundles, teachers, strict=True):
            if not _are_alike(teacher.languages, teachers[0].languages):
                source, target = teacher.languages
                raise ExportError(
                    f"{path}: translates from {source or '?'} into {target or '?'}, not like the "
                    "others"
                )
        options = Options(beam=beam, n_best=beam)
        for chunk, candidates in _translated(teachers, iter(pairs), options):
            for pair, texts in zip(chunk, candidates, strict=True):
                best = nearest(texts, pair.target, min_chrf)
                write(pair.target if best is None else best)
                report.kept += best is None
            report.lines += len(chunk)
            watch(report.lines)
    return report


def _are_alike(languages: tuple[str, str], others: tuple[str, str]) -> bool:
    """Tell whether two directions are the same, however each bundle spells its languages."""
    return languages == others or all(
        likeness(parse(one), parse(other)) for one, other in zip(languages, others, strict=True)
    )


def nearest(candidates: Sequence[str], reference: str, min_chrf: float = 0.0) -> str | None:
    """The candidate with the highest chrF, the first of equals; None where it is not enough."""
    chrf = CHRF()
    scored = [(chrf.sentence_score(text, [reference]).score, text) for text in candidates]
    score, best = max(scored, key=lambda s: s[0], default=(-1.0, ""))
    return best if score >= min_chrf else None


def _translated(
    teachers: Sequence[Teacher], pairs: Iterator[Pair], options: Options
) -> Iterator[tuple[list[Pair], list[list[str]]]]:
    """Chunks of pairs with all candidates of all teachers."""
    waiting: deque[tuple[list[Pair], list[_Work]]] = deque()

    def submit() -> None:
        chunk = list(islice(pairs, _CHUNK))
        if chunk:
            texts = [pair.source for pair in chunk]
            waiting.append((chunk, [teacher.submit(texts, options) for teacher in teachers]))

    for _ in range(_IN_FLIGHT):
        submit()
    while waiting:
        chunk, work = waiting.popleft()
        found = [teacher.texts(each) for teacher, each in zip(teachers, work, strict=True)]
        submit()
        yield (
            chunk,
            [[text for texts in each for text in texts] for each in zip(*found, strict=True)],
        )
