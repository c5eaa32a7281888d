"""Optimum-ONNX as a contender, in a process of its own.

Its newest release wants an older transformers than the one that is compared beside it, so it lives
in another environment, and this file is both ends: imported, it is the contender; run by the other
Python, it is the worker, which speaks JSON lines: a few ids a sentence, which cost nothing beside a
translation.

    python benchmarks/peers/optimum_peer.py MODEL THREADS    # what the contender runs

Only a post-norm model, a MarianMT: M2M-100 computes its positions by itself when it is read from a
directory, and they would not be ours.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from measuring.contenders import Answers, Contender
    from subjects.catalogue import Subject, Text

OPTIMUM = "optimum-onnx"
_SHARE = 0.25
_LONGEST = 256


@contextmanager
def optimum(
    subject: "Subject", beam: int, python: Path, directory: Path, log: Path
) -> Iterator[list["Contender"]]:
    """One for each number of threads; none, with a line that says why, where it does not work."""
    from measuring.contenders import Contender
    from measuring.machine import divisions

    if subject.model.settings.norm == "pre":
        print(f"{OPTIMUM}: not with {subject.name}, whose positions it could not be given")
        yield []
        return
    model = directory / f"{subject.name}-hf"
    if not model.exists():
        _save(subject, model)
    workers = []
    with log.open("a") as errors:
        for threads in sorted({threads for _, threads in divisions()}):
            worker = subprocess.Popen(  # noqa: S603 - our own
                [str(python), __file__, str(model), str(threads)],
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


def _save(subject: "Subject", path: Path) -> None:
    from safetensors.torch import save_file
    from transformers.utils import logging

    from peers import transformers_model

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


_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")


def _run(worker: "subprocess.Popen[str]", forced: int | None, beam: int) -> Any:
    def run(texts: Sequence["Text"], concurrent: int) -> "Answers":
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


def _serve(model_path: str, threads: int) -> None:
    """The worker. Only here is anything of optimum imported."""
    import onnxruntime
    import torch
    from optimum.onnxruntime import ORTModelForSeq2SeqLM

    torch.set_num_threads(threads)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    model = ORTModelForSeq2SeqLM.from_pretrained(
        model_path, export=True, provider="CPUExecutionProvider", session_options=settings
    )
    end, pad = model.config.eos_token_id, model.config.pad_token_id
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        longest = max(map(len, asked["ids"])) + 1
        ids = [[*one, end, *[pad] * (longest - len(one) - 1)] for one in asked["ids"]]
        mask = [[1] * (len(one) + 1) + [0] * (longest - len(one) - 1) for one in asked["ids"]]
        if asked["forced"] is None:
            limits = {"max_new_tokens": min(_LONGEST - 1, 2 * longest + 10)}
        else:
            limits = {"min_new_tokens": asked["forced"], "max_new_tokens": asked["forced"]}
        found = model.generate(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            num_beams=asked["beam"],
            do_sample=False,
            **limits,
        )
        answers = [one[1:] for one in found.tolist()]
        answers = [one[: one.index(end)] if end in one else one for one in answers]
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
