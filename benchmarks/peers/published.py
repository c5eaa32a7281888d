"""Contenders in this process for published models, from text to text: our engine, CTranslate2."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import sentencepiece
from ctranslate2.converters import TransformersConverter

from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.core import Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.text.vocabulary import Vocabulary
from dragoman_server.text.vocabulary_file import load_vocabularies
from measuring.contenders import Answers, Contender, Run
from measuring.machine import divisions
from measuring.names import IN_PROCESS
from peers import in_process
from subjects.published import Published
from subjects.subject import Text

_END = "</s>"


@contextmanager
def engines(subject: Published, rows: int) -> Iterator[list[Contender]]:
    """Yield our engine with each division of the cores, in greedy search."""
    bundle = read_bundle(subject.bundle)
    vocabularies = load_vocabularies(bundle)
    with ExitStack() as stack:
        found = []
        for lanes, threads in divisions():
            settings = EngineSettings(rows=rows, lanes=lanes, threads=threads)
            translator = stack.enter_context(Translator(bundle, settings))
            run = _engine_run(translator, *vocabularies)
            found.append(Contender(IN_PROCESS, f"{lanes} × {threads}", run))
        yield found


def _engine_run(translator: Translator, source: Vocabulary, target: Vocabulary) -> Run:
    def run(texts: Sequence[Text], concurrent: int) -> Answers:
        slots = threading.Semaphore(concurrent)
        pending = []
        for text in texts:
            slots.acquire()
            (ids,) = source.encode_all([text.text])
            pending.append(translator.submit([Sentence(tuple(ids))]))
            pending[-1].add_done_callback(lambda _: slots.release())
        return [target.decode(one.result()[0].hypotheses[0].ids) for one in pending]

    return run


class CTranslate2(in_process.CTranslate2):
    """CTranslate2 with a MarianMT that its own converter read."""

    def __init__(self, subject: Published, directory: Path, precision: str) -> None:
        path = directory / f"ctranslate2-{precision}"
        TransformersConverter(str(subject.directory)).convert(str(path), quantization=precision)
        self._source, self._target = (
            sentencepiece.SentencePieceProcessor(model_file=str(subject.directory / name))
            for name in ("source.spm", "target.spm")
        )
        self._load(path, precision)

    def _named(self, text: Text) -> list[str]:
        return [*self._source.encode(text.text, out_type=str), _END]

    def _answer(self, tokens: list[str]) -> str:
        text: str = self._target.decode(tokens)
        return text
