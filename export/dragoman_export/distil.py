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
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.core import Answer, Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Pending, Translator
from dragoman_training.corpus import Pair
from dragoman_training.tokenizer import Tokenizer

_CHUNK = 2048
_IN_FLIGHT = 2
"""Chunks: while one is written, the next is translated."""


@dataclass
class DistilReport:
    lines: int = 0
    kept: int = 0
    """Whose target stayed as it was: blank, longer than a teacher takes, or not met well enough."""


class Teacher:
    """A bundle that translates text, a sentence each, as a context manager."""

    def __init__(self, path: Path) -> None:
        bundle = read_bundle(path)
        manifest = bundle.manifest
        self.languages = (manifest.source_language, manifest.target_language)
        self._source, self._target = (
            Tokenizer((path / name).read_bytes(), str(path / name))
            for name in (manifest.source_tokenizer, manifest.target_tokenizer)
        )
        self._longest = manifest.max_source_tokens - 1
        self._translator = Translator(
            bundle, EngineSettings(max_waiting_sentences=(_IN_FLIGHT + 1) * _CHUNK)
        )

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
        ids = self._source.encode_all(texts)
        fits = [n for n, tokens in enumerate(ids) if 0 < len(tokens) <= self._longest]
        if not fits:
            return _Work(len(texts), [], None)
        sentences = [Sentence(tuple(ids[n])) for n in fits]
        return _Work(len(texts), fits, self._translator.submit(sentences, options))

    def texts(self, work: "_Work") -> list[list[str]]:
        """The best translations of each text, best first; none for one that does not fit."""
        found: list[list[str]] = [[] for _ in range(work.texts)]
        answers: list[Answer] = work.pending.result() if work.pending else []
        for number, answer in zip(work.fits, answers, strict=True):
            if answer.failure:
                raise ExportError(f"a teacher failed to translate: {answer.failure.value}")
            found[number] = [self._target.decode(h.ids) for h in answer.hypotheses]
        return found


@dataclass(frozen=True)
class _Work:
    texts: int
    fits: list[int]
    """Numbers of the texts that were submitted."""
    pending: Pending | None


def distil(
    bundles: Sequence[Path],
    pairs: Iterable[Pair],
    write: Callable[[str], object],
    *,
    beam: int,
    least: float = 0.0,
    watch: Callable[[int], None],
) -> DistilReport:
    """Write a target for each pair, in order.

    The right translation stays where no teacher's has at least so much chrF against it.
    """
    report = DistilReport()
    with ExitStack() as stack:
        teachers = [stack.enter_context(Teacher(path)) for path in bundles]
        for path, teacher in zip(bundles, teachers, strict=True):
            if teacher.languages != teachers[0].languages:
                raise ExportError(f"{path}: translates {teacher.languages}, not like the others")
        options = Options(beam=beam, n_best=beam)
        for chunk, candidates in _translated(teachers, iter(pairs), options):
            for pair, texts in zip(chunk, candidates, strict=True):
                best = nearest(texts, pair.target, least)
                write(pair.target if best is None else _one_line(best))
                report.kept += best is None
            report.lines += len(chunk)
            watch(report.lines)
    return report


def nearest(candidates: Sequence[str], reference: str, least: float = 0.0) -> str | None:
    """The candidate with the highest chrF, the first of equals; None where it is not enough."""
    chrf = CHRF()
    scored = [(chrf.sentence_score(text, [reference]).score, text) for text in candidates]
    score, best = max(scored, key=lambda s: s[0], default=(-1.0, ""))
    return best if score >= least else None


def _one_line(text: str) -> str:
    """A vocabulary with bytes can spell line breaks, which would shift every line after them."""
    return " ".join(text.split())


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
