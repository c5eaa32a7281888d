"""Optimum-ONNX in an environment of its own: reads JSON lines, answers each with a JSON line.

    python benchmarks/peers/optimum_worker.py MODEL THREADS    # what optimum_peer.py starts

Nothing of Dragoman is imported, as the other environment does not have it. A line in has the
source ids of a batch, the beam size and the length that translations are to have; a line out has
the ids of their translations. Ids of a few sentences cost nothing beside translating them.
"""

import json
import sys

import onnxruntime
import torch
from optimum.onnxruntime import ORTModelForSeq2SeqLM

_MAX_TOKENS = 256


def main(model_path: str, threads: int) -> None:
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
            limits = {"max_new_tokens": min(_MAX_TOKENS - 1, 2 * longest + 10)}
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
    main(sys.argv[1], int(sys.argv[2]))
