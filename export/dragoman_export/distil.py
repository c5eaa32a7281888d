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
from dragoman_export.hf.languages import checked
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.core import Answer, Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Pending, Translator
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.models.directions import Direction, Directions
from dragoman_server.text.languages import Tag, likeness, parse
from dragoman_server.text.vocabulary_file import load_vocabularies
from dragoman_training.data.text.corpus import Pair

_CHUNK = 2048
"""Sentence pairs that are translated and written together."""
_IN_FLIGHT = 2
"""Chunks that are begun at a time: while one is written, the next is translated."""


@dataclass
class DistilReport:
    """What was written."""

    lines: int = 0
    """Lines that were written."""
    kept: int = 0
    """Lines with the right translation, because the source is blank or longer than any teacher
    takes, or because no teacher came near enough."""


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
        """Wait for the translations of each text, best first. A text that does not fit has none."""
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
    """Texts that a teacher was given."""

    texts: int
    """Number of the texts."""
    fits: list[int]
    """Places of the texts that are being translated; the others do not fit."""
    pending: Pending | None
    """Answers of the texts that fit; None if none does."""


def _direction(path: Path, manifest: Manifest, source: str, target: str) -> Direction:
    """Return the direction that these tags mean; an empty tag leaves it to the bundle."""
    wanted = _tag(source, "source"), _tag(target, "target")
    try:
        directions = Directions(manifest)
    except ValueError as error:
        raise ExportError(f"{path}: {error}") from None
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
    return parse(checked(language, side)) if language else Tag()


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
    """Write a target for each pair, in order: the teachers' translation nearest to the right one.

    The right translation stays if no teacher's has at least ``min_chrf`` against it. The languages
    have to be given for bundles that have several. ``watch`` is told how many lines are written.
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
        for chunk, translations in _translated(teachers, iter(pairs), options):
            for pair, texts in zip(chunk, translations, strict=True):
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


def nearest(translations: Sequence[str], reference: str, min_chrf: float = 0.0) -> str | None:
    """Return the translation of the highest chrF, the first of equals; None if it is too low."""
    chrf = CHRF()
    scored = [(chrf.sentence_score(text, [reference]).score, text) for text in translations]
    score, best = max(scored, key=lambda s: s[0], default=(-1.0, ""))
    return best if score >= min_chrf else None


def _translated(
    teachers: Sequence[Teacher], pairs: Iterator[Pair], options: Options
) -> Iterator[tuple[list[Pair], list[list[str]]]]:
    """Yield chunks of pairs, with all translations of all teachers for each pair."""
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
