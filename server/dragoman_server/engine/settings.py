"""The settings of an engine, and what they come to on this machine."""

import os
from dataclasses import dataclass
from pathlib import Path

from dragoman_server.runtime.results import CANDIDATES
from dragoman_server.runtime.scoring import candidates_of
from dragoman_server.runtime.sessions import PROVIDERS

MAX_BEAM = CANDIDATES // candidates_of(beam=1)
"""Largest beam whose candidates a step has room for."""
_MIN_ROWS = 16
"""Rows of a lane below which its products are too small to be fast."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    device: str = "cpu"
    rows: int = 64
    """Hypotheses that one request may have decoded at a time, over all replicas.

    Each replica has ``max_beam`` rows beside them, for requests that hold none.
    """
    replicas: int | None = None
    """Lanes that run side by side with the same weights; unset: to suit the cores."""
    threads: int | None = None
    """For each replica; unset: to suit the cores."""
    max_beam: int = 8
    encode_tokens: int = 512
    """Source tokens read between two steps of a lane."""
    max_waiting_sentences: int = 10_000
    """Sentences in the queue."""
    max_waiting_requests: int = 10_000
    """Requests in the queue, beside those that free rows will take at once."""
    max_waiting_tokens: int = 1_000_000
    """Source tokens in the queue; a request that is alone there may have more."""

    def __post_init__(self) -> None:
        for name in (
            *("rows", "max_beam", "encode_tokens"),
            *("max_waiting_sentences", "max_waiting_requests", "max_waiting_tokens"),
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name in ("replicas", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: it must be at least 1")
        if self.max_beam > MAX_BEAM:
            raise ValueError(f"max_beam is {self.max_beam}: it must be at most {MAX_BEAM}")
        if self.device not in PROVIDERS:
            raise ValueError(f"device is {self.device!r}: it must be one of cpu, cuda")

    @property
    def resolved(self) -> "Resolved":
        """With what is unset chosen for this machine."""
        cores = available_cores()
        replicas, threads = self.replicas, self.threads
        if self.device != "cpu":
            replicas, threads = replicas or 1, threads or 1
        if replicas is None:
            # A lane of one thread never waits for other threads.
            replicas = max(1, min(cores // (threads or 1), self.rows // _MIN_ROWS))
        if threads is None:
            threads = max(1, cores // replicas)
        return Resolved(replicas, threads, -(-self.rows // replicas) + self.max_beam)


@dataclass(frozen=True)
class Resolved:
    replicas: int
    threads: int
    rows_per_lane: int

    @property
    def session_threads(self) -> int:
        """Of the pool that all replicas share: each brings a thread of its own besides."""
        return self.replicas * (self.threads - 1) + 1


def available_cores() -> int:
    """Cores that this process may use: by affinity, and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores or 1, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return cores or 1
