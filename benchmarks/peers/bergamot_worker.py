"""Bergamot in a Python of its own: reads JSON lines, answers each with a JSON line.

    python3.10 benchmarks/peers/bergamot_worker.py MODEL THREADS    # what bergamot_peer.py starts

Its wheels are for Python 3.10 at most, which does not have Dragoman. MODEL is the directory of a
model for Firefox. A line in has texts, each of which is one sentence; a line out has their
translations.
"""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

_SETTINGS = """
models: [{model}]
vocabs: [{vocabulary}, {vocabulary}]
shortlist: [{shortlist}, false]
beam-size: 1
normalize: 1.0
word-penalty: 0
max-length-break: 128
mini-batch-words: 1024
workspace: 128
max-length-factor: 2.5
skip-cost: true
cpu-threads: 0
quiet: true
quiet-translation: true
gemm-precision: int8shiftAlphaAll
ssplit-mode: sentence
alignment: soft
"""
"""Firefox's, but for sentences, which are lines here."""


def _library() -> Any:
    """Load Bergamot's library itself: its package would look for models on the network."""
    package = importlib.util.find_spec("bergamot")
    if package is None or package.origin is None:
        raise SystemExit(f"{sys.executable} has no bergamot")
    file = next(Path(package.origin).parent.glob("_bergamot*.so"))
    spec = importlib.util.spec_from_file_location("_bergamot", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(directory: Path, threads: int) -> None:
    bergamot = _library()
    files = {
        name: next(directory.glob(pattern))
        for name, pattern in (
            ("model", "model*.bin"),
            ("vocabulary", "vocab*.spm"),
            ("shortlist", "lex*.bin"),
        )
    }
    service = bergamot.Service(bergamot.ServiceConfig(numWorkers=threads))
    model = service.modelFromConfig(_SETTINGS.format(**files))
    print("ready", flush=True)
    for line in sys.stdin:
        texts = bergamot.VectorString(json.loads(line))
        found = service.translate(model, texts, bergamot.ResponseOptions())
        print(json.dumps([response.target.text.strip() for response in found]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
