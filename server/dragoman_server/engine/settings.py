"""The settings of an engine, and what they come to on this machine."""

import os
from dataclasses import dataclass
from pathlib import Path

from dragoman_server.engine.scheduler_settings import QueueSettings, check_at_least_one
from dragoman_server.runtime.limits import MAX_CANDIDATES, PROVIDERS
from dragoman_server.runtime.scoring import candidates_of

MAX_BEAM = MAX_CANDIDATES // candidates_of(beam=1)
"""Largest beam whose candidates a step has room for."""
_MIN_ROWS = 16
"""Rows of a lane below which its products are too small to be fast."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings(QueueSettings):
    """What an engine takes of a machine, and the bounds of its queue."""

    device: str = "cpu"
    """Where the graphs run: cpu or cuda."""
    rows: int = 64
    """Rows in all lanes together, that is, hypotheses that one request may have decoded at a time.

    Each lane has ``max_beam`` rows beside them, for requests that hold none.
    """
    lanes: int | None = None
    """Lanes that run side by side with the same weights; unset: to suit the cores."""
    threads: int | None = None
    """Threads of each lane; unset: to suit the cores."""
    workers: int | None = None
    """Processes that the lanes of a server run in, one lane each; 0: its own, as threads; unset: to
    suit the cores."""
    pin: bool = True
    """Keep each worker to cores of its own, where there are enough and no container's quota."""
    share_weights: bool = True
    """Let workers share one copy of the weights, which is kept in the cache directory."""
    cache_dir: Path | None = None
    """Directory of the weights that are shared; unset: dragoman in $XDG_CACHE_HOME or ~/.cache."""
    reserve_memory: bool = False
    """Take the memory of all rows at the start, so that it is sure to be there; steps of many rows
    are a little faster."""
    max_beam: int = 8
    """Largest beam that a request may ask for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_one(self, "rows", "max_beam", "lanes", "threads")
        if self.workers is not None and self.workers < 0:
            raise ValueError(f"workers is {self.workers}: it must be at least 0")
        if self.workers and self.lanes not in (None, self.workers):
            raise ValueError(
                f"lanes is {self.lanes}, workers {self.workers}: each worker has one lane"
            )
        if self.max_beam > MAX_BEAM:
            raise ValueError(f"max_beam is {self.max_beam}: it must be at most {MAX_BEAM}")
        if self.device not in PROVIDERS:
            raise ValueError(f"device is {self.device!r}: it must be one of cpu, cuda")

    @property
    def resolved(self) -> "Resolved":
        """These settings with what is unset chosen for this machine."""
        cores = available_cores()
        lanes, threads = self.workers or self.lanes, self.threads
        if self.device != "cpu":
            lanes, threads = lanes or 1, threads or 1
        if lanes is None:
            # A lane of one thread never waits for other threads.
            lanes = max(1, min(cores // (threads or 1), self.rows // _MIN_ROWS))
        if threads is None:
            threads = max(1, cores // lanes)
        # On one core, a process of its own only costs the lane messages.
        workers = lanes if self.workers is None and cores > 1 else self.workers or 0
        return Resolved(lanes, threads, -(-self.rows // lanes) + self.max_beam, workers)


@dataclass(frozen=True)
class Resolved:
    """What the settings of an engine come to on this machine."""

    lanes: int
    """Lanes that run side by side."""
    threads: int
    """Threads of each lane."""
    rows_per_lane: int
    """Rows in each lane, those for requests that hold none included."""
    workers: int
    """Processes of their own that lanes run in; 0: lanes are threads."""

    @property
    def session_threads(self) -> int:
        """Threads of the pool that all lanes share; each lane brings one of its own besides."""
        return self.lanes * (self.threads - 1) + 1


def available_cores() -> int:
    """Return the cores that this process may use: by affinity, and by its container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores or 1, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return cores or 1
