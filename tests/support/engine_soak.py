"""Thousands of random requests through one engine, and what they leave behind, as JSON.

A process of its own, without PyTorch: so little else is in its memory that a leak shows.
Usage: python engine_soak.py directory-of-graphs-and-manifest requests
"""

import gc
import json
import random
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dragoman_server.bundle.manifest import MANIFEST, Manifest
from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.engine.core import Options, Report, Sampling, Sentence, Ticket
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings

OUTSTANDING = 80
"""Sentences that are asked for at a time: more than there are rows."""
RANDOM = random.Random(71)


@dataclass(frozen=True)
class Resources:
    threads: int
    descriptors: int
    objects: int
    """Python objects that the garbage collector knows."""

    @classmethod
    def now(cls) -> "Resources":
        gc.collect()
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        return cls(threading.active_count(), descriptors, len(gc.get_objects()))


def resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


@dataclass
class Outcome:
    submitted: int = 0
    unexpected: int = 0
    """Answers to what was not asked, or was answered before."""
    missing: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    """Sentences by how they ended: answered, or why not."""
    resident: list[int] = field(default_factory=list)
    """Resident memory in bytes, from time to time."""
    left: list[str] = field(default_factory=list)
    """What the engine still holds in the end."""
    before: Resources | None = None
    idle: tuple[Resources, Resources] | None = None
    """Resources of the running engine, after a quarter of the requests and after all."""
    after: Resources | None = None


class Receiver:
    """Takes answers, and lets no more sentences in than should be outstanding."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.expected: set[Ticket] = set()
        self.changed = threading.Condition()

    def __call__(self, report: Report) -> None:
        with self.changed:
            for answer in report.answers:
                if answer.ticket not in self.expected:
                    self.outcome.unexpected += 1
                self.expected.discard(answer.ticket)
                end = answer.failure.value if answer.failure else "answered"
                self.outcome.ends[end] = self.outcome.ends.get(end, 0) + 1
            self.changed.notify_all()

    def wait_for_fewer_than(self, sentences: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.expected) < sentences, timeout=60)


def random_options() -> Options:
    beam = RANDOM.choice([1, 1, 1, 1, 2, 5])
    min_tokens = RANDOM.choice([0, 0, 3])
    sampling = Sampling(
        temperature=RANDOM.choice([0.7, 1.5]),
        top_k=RANDOM.choice([0, 10, 100]),
        top_p=RANDOM.choice([0.8, 1.0]),
        seed=RANDOM.choice([None, 5]),
    )
    return Options(
        beam=beam,
        n_best=RANDOM.randint(1, beam),
        sampling=sampling if beam == 1 and RANDOM.random() < 0.3 else None,
        repetition_penalty=RANDOM.choice([1.0, 1.3]),
        no_repeat_ngram=RANDOM.choice([0, 0, 3]),
        suppressed=RANDOM.choice([(), (5, 6, 7)]),
        min_tokens=min_tokens,
        max_tokens=RANDOM.choice(
            [None, min_tokens + RANDOM.randint(1, 9), min_tokens + RANDOM.randint(1, 9)]
        ),
        alignment=RANDOM.random() < 0.2,
    )


def random_ids(longest: int) -> tuple[int, ...]:
    return tuple(RANDOM.randrange(4, 50) for _ in range(RANDOM.randint(0, longest)))


def random_sentence(options: Options) -> Sentence:
    if RANDOM.random() < 0.1:
        return Sentence(random_ids(8), target=random_ids(8))
    prefix = random_ids(3) if options.max_tokens is None else ()
    return Sentence(random_ids(8), prefix=prefix)


def soak(engine: Engine, receiver: Receiver, requests: int) -> None:
    """Submit random requests, of which some are cancelled and some have no time."""
    recent: list[int] = []
    for number in range(requests):
        options = random_options()
        sentences = [random_sentence(options) for _ in range(RANDOM.choice([1, 1, 2]))]

        def expect(request: int, count: int = len(sentences)) -> None:
            with receiver.changed:
                receiver.expected |= {Ticket(request, sentence) for sentence in range(count)}

        request = engine.submit(
            sentences,
            options,
            flow=RANDOM.choice([None, RANDOM.randrange(4)]),
            priority=RANDOM.choice([0, 0, 1]),
            deadline=time.monotonic() + RANDOM.choice([0.0, 0.01, 3600, 3600, 3600, 3600]),
            stream=RANDOM.random() < 0.2,
            queued=expect,
        )
        receiver.outcome.submitted += len(sentences)
        recent = [*recent[-20:], request]
        if RANDOM.random() < 0.15:
            engine.cancel(RANDOM.choice(recent))
        receiver.wait_for_fewer_than(OUTSTANDING)
        if number % 20 == 0:
            receiver.outcome.resident.append(resident_bytes())
    receiver.wait_for_fewer_than(1)


def what_is_left(engine: Engine) -> list[str]:
    lanes = {f"rows of lane {lane.number}": lane.rows.count for lane in engine.lanes}
    owned = {
        f"owners in lane {lane.number}": sum(owner is not None for owner in lane.rows.owner)
        for lane in engine.lanes
    }
    rest = {
        "waiting": engine.waiting,
        "running": engine.running,
        "jobs": len(engine._jobs),
        "requests": len(engine._scheduler._requests),
        "flows": len(engine._scheduler._held_rows),
        "used rows": engine._scheduler.used_rows,
        "constrained": sum(len(lane._constraints._by_options) for lane in engine.lanes),
    }
    return [name for name, count in {**lanes, **owned, **rest}.items() if count]


def main(directory: Path, requests: int) -> None:
    outcome = Outcome()
    receiver = Receiver(outcome)
    manifest = Manifest.from_json((directory / MANIFEST).read_text())
    outcome.before = Resources.now()
    engine = Engine(
        UncheckedBundle(directory, manifest),
        EngineSettings(rows=32, lanes=2, threads=1),
        receiver,
    )
    engine.start()
    soak(engine, receiver, requests // 4)
    idle = Resources.now()
    soak(engine, receiver, requests - requests // 4)
    outcome.idle = idle, Resources.now()
    outcome.missing = len(receiver.expected)
    outcome.left = what_is_left(engine)
    engine.close()
    del engine
    outcome.after = Resources.now()
    print(json.dumps(asdict(outcome)))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
