"""Contenders in this process: our engine, CTranslate2 and transformers, with their settings."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import ctranslate2
import torch

from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.engine.settings import EngineSettings, available_cores
from dragoman_server.engine.translator import Translator
from dragoman_training.data.tokenizer import END, PAD
from dragoman_training.models.transformer import Transformer
from measuring.contenders import Answers, Contender, Run
from measuring.machine import divisions
from measuring.names import CTRANSLATE2, IN_PROCESS, TRANSFORMERS
from peers import ctranslate2_calls, ctranslate2_model, transformers_model
from subjects.subject import Subject, Text

_TRANSFORMERS_SHARE = 0.25
"""Share of the texts that transformers is given: with all of them a round would take minutes."""
_MAX_TOKENS = 256
"""Most tokens of a translation whose length is not forced."""


@contextmanager
def engines(
    subject: Subject, bundle: RunnableBundle, beam: int, rows: int
) -> Iterator[list[Contender]]:
    """Yield our engine with each division of the cores."""
    forced = subject.forced
    options = (
        Options(beam=beam)
        if forced is None
        else Options(beam=beam, min_tokens=forced - 1, max_tokens=forced)
    )
    with ExitStack() as stack:
        found = []
        for lanes, threads in divisions():
            settings = EngineSettings(rows=rows, lanes=lanes, threads=threads)
            translator = stack.enter_context(Translator(bundle, settings))
            run = _engine_run(translator, options)
            found.append(Contender(IN_PROCESS, f"{lanes} × {threads}", run))
        yield found


def _engine_run(translator: Translator, options: Options) -> Run:
    def run(texts: Sequence[Text], concurrent: int) -> Answers:
        slots = threading.Semaphore(concurrent)
        pending = []
        for text in texts:
            slots.acquire()
            pending.append(translator.submit([Sentence(text.ids)], options))
            pending[-1].add_done_callback(lambda _: slots.release())
        return [one.result()[0].hypotheses[0].ids for one in pending]

    return run


class CTranslate2:
    """CTranslate2 with all divisions of the cores, each loaded once."""

    def __init__(
        self,
        model: Transformer,
        directory: Path,
        precision: str,
        shortlist: Shortlist | None = None,
    ) -> None:
        path = directory / f"ctranslate2-{precision}"
        ctranslate2_model.write_model(model, path, precision)
        if shortlist is not None:
            ctranslate2_model.write_map(shortlist, model, path)
        self._tokens = ctranslate2_calls.tokens(model.source_vocabulary)
        self._load(path, precision)

    def _load(self, path: Path, precision: str) -> None:
        self.path = path
        self._translators = {
            (workers, threads): ctranslate2_calls.load(path, precision, workers, threads)
            for workers, threads in {*divisions(), (1, 1)}
        }

    def contenders(
        self, forced: int | None, beam: int, concurrent: int, use_map: bool = False
    ) -> list[Contender]:
        """Return all divisions with batches that suit so many sentences at a time.

        ``use_map`` asks for the vocabulary map, which needs a shortlist.
        """
        options = {**ctranslate2_calls.decoding_options(forced, beam), "use_vmap": use_map}
        found = []
        for (workers, threads), translator in sorted(self._translators.items()):
            examples = {concurrent, max(1, concurrent // workers), max(1, concurrent // 2)}
            if concurrent >= 8:
                examples |= {concurrent // (2 * workers)}
            batches = [("examples", size) for size in sorted(examples)]
            if forced is None and concurrent >= 8:  # sentences differ in length: fill by tokens
                batches += [("tokens", size) for size in (256, 512, 1024)]
            for kind, size in batches:
                run = self._run(translator, options, kind, size)
                setting = f"{workers} × {threads}, batches of {size} {kind}"
                found.append(Contender(CTRANSLATE2, setting, run))
        return found

    def _run(
        self,
        translator: ctranslate2.Translator,
        options: dict[str, Any],
        batch_type: str,
        size: int,
    ) -> Run:
        def run(texts: Sequence[Text], concurrent: int) -> Answers:
            answers: list[Any] = []
            for at in range(0, len(texts), concurrent):
                results = translator.translate_batch(
                    [self._named(text) for text in texts[at : at + concurrent]],
                    max_batch_size=size,
                    batch_type=batch_type,
                    **options,
                )
                answers += [self._answer(result.hypotheses[0]) for result in results]
            return answers

        return run

    def _named(self, text: Text) -> list[str]:
        """Return the tokens of a source, as the model names them."""
        return ctranslate2_calls.named(text.ids, self._tokens)

    def _answer(self, tokens: list[str]) -> Any:
        """Return a translation from its tokens."""
        return ctranslate2_calls.ids_of(tokens)


def transformers(subject: Subject, beam: int) -> list[Contender]:
    """Return transformers' ``generate`` in float32, as it has no int8 for CPUs of its own."""
    model = transformers_model.build(subject.model)
    return [
        Contender(
            TRANSFORMERS,
            f"float32, {threads} thread{'s' if threads > 1 else ''}",
            _generate_run(model, subject.forced, beam, threads),
            share=_TRANSFORMERS_SHARE,
        )
        for threads in sorted({1, available_cores()})
    ]


def _generate_run(model: Any, forced: int | None, beam: int, threads: int) -> Run:
    def run(texts: Sequence[Text], concurrent: int) -> Answers:
        torch.set_num_threads(threads)
        answers = []
        for at in range(0, len(texts), concurrent):
            batch = texts[at : at + concurrent]
            ids_BS, mask_BS = _padded(batch)
            if forced is None:
                limits = {"max_new_tokens": min(_MAX_TOKENS - 1, 2 * ids_BS.shape[1] + 10)}
            else:
                limits = {"min_new_tokens": forced, "max_new_tokens": forced}
            with torch.inference_mode():
                found = model.generate(
                    ids_BS, attention_mask=mask_BS, num_beams=beam, do_sample=False, **limits
                )
            answers += [_without_end(line[1:]) for line in found.tolist()]
        return answers

    return run


def _padded(texts: Sequence[Text]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(text.ids) for text in texts) + 1
    ids = [[*text.ids, END, *[PAD] * (longest - len(text.ids) - 1)] for text in texts]
    mask = [[1] * (len(text.ids) + 1) + [0] * (longest - len(text.ids) - 1) for text in texts]
    return torch.tensor(ids), torch.tensor(mask)


def _without_end(ids: list[int]) -> tuple[int, ...]:
    return tuple(ids[: ids.index(END)] if END in ids else ids)
