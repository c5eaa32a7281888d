"""Optimum-ONNX as a contender, in a process of its own.

Its newest release wants an older transformers than the one that is compared beside it. So it lives
in another environment, whose Python runs ``optimum_worker.py``.

Only post-norm models take part, as a MarianMT. Pre-norm models would be an M2M-100, which computes
its positions anew when it is read from a directory, and those are not ours.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from safetensors.torch import save_file
from transformers.utils import logging

from measuring.contenders import Answers, Contender, Run
from measuring.machine import divisions
from measuring.names import OPTIMUM
from peers import transformers_model
from subjects.subject import Subject, Text

_WORKER = Path(__file__).with_name("optimum_worker.py")
_SHARE = 0.25
"""Share of the texts that it is given: with all of them a round would take minutes."""
_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")


@contextmanager
def optimum(
    subject: Subject, beam: int, python: Path, directory: Path, log: Path
) -> Iterator[list[Contender]]:
    """Yield a contender for each number of threads.

    Where it does not work there is none, and a printed line says why.
    """
    if subject.model.settings.norm == "pre":
        print(f"{OPTIMUM} does not take part with {subject.name}: it computes its own positions")
        yield []
        return
    model = directory / f"{subject.name}-hf"
    if not model.exists():
        _save(subject, model)
    workers = []
    with log.open("a") as errors:
        for threads in sorted({threads for _, threads in divisions()}):
            worker = subprocess.Popen(  # noqa: S603 - our own
                [str(python), str(_WORKER), str(model), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            workers.append((threads, worker))
    try:
        found = []
        for threads, worker in workers:
            assert worker.stdout is not None
            if worker.stdout.readline().strip() != "ready":
                print(f"{OPTIMUM} does not work here: {log.read_text().strip()[-300:]}")
                break
            run = _run(worker, subject.forced, beam)
            found.append(Contender(OPTIMUM, f"float32, {threads} threads", run, share=_SHARE))
        yield found
    finally:
        for _, worker in workers:
            worker.kill()
            worker.wait()


def _save(subject: Subject, path: Path) -> None:
    theirs = transformers_model.build(subject.model)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    theirs.save_pretrained(path)
    # It leaves out the positions, which it thinks it can compute again; ours have another layout.
    state = {
        name: tensor.contiguous()
        for name, tensor in theirs.state_dict().items()
        if name not in ("lm_head.weight", *_TIED)
    }
    for side in ("encoder", "decoder"):
        positions = getattr(theirs.model, side).embed_positions.weight
        state[f"model.{side}.embed_positions.weight"] = positions.detach().clone()
    save_file(state, path / "model.safetensors", {"format": "pt"})


def _run(worker: "subprocess.Popen[str]", forced: int | None, beam: int) -> Run:
    def run(texts: Sequence[Text], concurrent: int) -> Answers:
        assert worker.stdin is not None
        assert worker.stdout is not None
        answers = []
        for at in range(0, len(texts), concurrent):
            ids = [text.ids for text in texts[at : at + concurrent]]
            worker.stdin.write(json.dumps({"ids": ids, "beam": beam, "forced": forced}) + "\n")
            worker.stdin.flush()
            answers += [tuple(one) for one in json.loads(worker.stdout.readline())]
        return answers

    return run
