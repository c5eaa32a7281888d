"""Settings and options that make no sense are refused, and what is unset suits the machine."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from dragoman_server.engine.core import Options, Sampling, Sentence
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings, available_cores
from dragoman_server.errors import BundleError
from support.engine_bundles import graph_bundle, one_lane, seeded_bundle
from support.models import tiny_model

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": 0}, "rows is 0: it must be at least 1"),
        ({"lanes": 0}, "lanes is 0: it must be at least 1"),
        ({"threads": -1}, "threads is -1: it must be at least 1"),
        ({"max_beam": 0}, "max_beam is 0: it must be at least 1"),
        ({"max_beam": 33}, "max_beam is 33: it must be at most 32"),
        ({"max_encode_tokens": 0}, "max_encode_tokens is 0: it must be at least 1"),
        ({"max_waiting_sentences": 0}, "max_waiting_sentences is 0: it must be at least 1"),
        ({"device": "tpu"}, "device is 'tpu': it must be one of cpu, cuda"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        EngineSettings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"beam": 0}, "beam is 0: it must be at least 1"),
        ({"n_best": 0}, "n_best is 0: it must be at least 1"),
        ({"beam": 2, "n_best": 3}, "n_best is 3: it must be at most the beam size, 2"),
        ({"length_penalty": -0.1}, "length_penalty is -0.1: it must be from 0 to 10"),
        ({"length_penalty": math.nan}, "length_penalty is nan: it must be from 0 to 10"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0: it must be from 0.01 to 100"),
        ({"repetition_penalty": math.inf}, "repetition_penalty is inf: it must be from 0.01"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram is -1: it must be at least 0"),
        ({"min_tokens": -1}, "min_tokens is -1: it must be at least 0"),
        ({"max_tokens": 0}, "max_tokens is 0: it must be above min_tokens, 0"),
        ({"min_tokens": 5, "max_tokens": 5}, "max_tokens is 5: it must be above min_tokens, 5"),
        ({"suppressed": tuple(range(300))}, "suppressed has 300 tokens: it may have 256"),
        ({"beam": 2, "sampling": Sampling()}, "beam is 2: sampling needs a beam of 1"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Options(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0: it must be from 0.01 to 100"),
        ({"temperature": math.nan}, "temperature is nan: it must be from 0.01 to 100"),
        ({"temperature": 101.0}, "temperature is 101.0: it must be from 0.01 to 100"),
        ({"top_k": -1}, "top_k is -1: it must be at least 0"),
        ({"top_p": 0.0}, "top_p is 0.0: it must be above 0 and at most 1"),
        ({"top_p": 1.1}, "top_p is 1.1: it must be above 0 and at most 1"),
        ({"seed": -1}, "seed is -1: it must be from 0 to"),
        ({"seed": 2**64}, f"seed is {2**64}: it must be from 0 to"),
    ],
    ids=str,
)
def test_samplings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Sampling(**wrong)


def test_a_sentence_is_searched_for_or_scored() -> None:
    with pytest.raises(ValueError, match="prefix and target are both given"):
        Sentence((5,), prefix=(6,), target=(7,))


def test_options_that_mean_the_same_are_the_same() -> None:
    assert Options(suppressed=(9, 5, 9)) == Options(suppressed=(5, 9))
    assert hash(Options(suppressed=[5, 9])) == hash(Options(suppressed=(9, 5)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cores", "given", "lanes", "threads", "rows"),
    [
        (1, {}, 1, 1, 64 + 8),
        (2, {}, 2, 1, 32 + 8),
        (8, {}, 4, 2, 16 + 8),
        (8, {"threads": 4}, 2, 4, 32 + 8),
        (8, {"lanes": 3}, 3, 2, 22 + 8),
        (8, {"lanes": 1, "threads": 3}, 1, 3, 64 + 8),
        (2, {"threads": 5}, 1, 5, 64 + 8),
        (4, {"rows": 15, "max_beam": 3}, 1, 4, 15 + 3),
        (2, {"lanes": 5, "rows": 3}, 5, 1, 1 + 8),
        (8, {"device": "cuda"}, 1, 1, 64 + 8),
    ],
    ids=str,
)
def test_what_is_unset_suits_the_cores(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    given: dict[str, Any],
    lanes: int,
    threads: int,
    rows: int,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    resolved = EngineSettings(**given).resolved
    assert (resolved.lanes, resolved.threads, resolved.rows_per_lane) == (
        lanes,
        threads,
        rows,
    )


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("max 100000", 8),
        ("400000 100000", 4),
        ("350000 100000", 3),
        ("50000 100000", 1),
        ("1600000 100000", 8),
        ("", 8),
        ("none such", 8),
        (None, 8),
    ],
)
def test_a_containers_quota_counts(
    monkeypatch: pytest.MonkeyPatch, quota: str | None, expected: int
) -> None:
    read_text = Path.read_text

    def read(path: Path, *arguments: Any) -> str:
        if path != CPU_MAX:
            return read_text(path, *arguments)
        if quota is None:
            raise FileNotFoundError(path)
        return quota

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(Path, "read_text", read)
    assert available_cores() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux's affinity")
def test_cores_that_the_process_may_not_use_do_not_count() -> None:
    script = (
        "import os\n"
        "from dragoman_server.engine.settings import available_cores\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "raise SystemExit(available_cores())"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 1


@pytest.mark.skipif(
    "CUDAExecutionProvider" in ort.get_available_providers(), reason="needs a machine without CUDA"
)
def test_a_device_that_is_not_there_is_refused() -> None:
    settings = dataclasses.replace(one_lane(), device="cuda")
    bundle = graph_bundle(tiny_model(seed=1), "float16")
    with pytest.raises(BundleError, match="cuda: this onnxruntime has no CUDAExecutionProvider"):
        Engine(bundle, settings, print)
    with pytest.raises(BundleError, match="precision float32, but device cuda needs float16"):
        Engine(seeded_bundle(), settings, print)


def test_memory_is_counted_before_anything_runs() -> None:
    settings = EngineSettings(rows=10, lanes=2, threads=1, max_beam=3)
    engine = Engine(seeded_bundle(), settings, print)
    caches = 2 * (5 + 3) * engine.manifest.cache_bytes_per_row
    assert caches < engine.buffer_bytes < 2 * caches
    engine.close()
