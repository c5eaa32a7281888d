"""How long the graphs of a simulated worker take, and how slowly time goes for all.

Time is *dilated*: what takes a second on the simulated machine takes ``dilation`` seconds here. The
graphs sleep for so many times as long, and a thread that has computed something sleeps until it has
taken so many times as long, too. So one core can play many: with a dilation of 16, each of its
sixteen parts is a core of the simulated machine.
"""

import json
import os
import time
from dataclasses import asdict, dataclass

import numpy as np

_VARIABLE = "SIMULATED_PACE"


@dataclass(frozen=True)
class Pace:
    """What the graphs of a worker take on the simulated machine, in its seconds."""

    dilation: float
    """Seconds here for a second there."""
    step_seconds: dict[int, float]
    """Seconds of a decoder step, by its rows; between them it is interpolated."""
    encode_seconds: float
    """Seconds of the encoder, for each position that it computes."""

    def step(self, rows: int) -> float:
        """Return the seconds of a step of so many rows."""
        known = sorted(self.step_seconds)
        return float(np.interp(rows, known, [self.step_seconds[each] for each in known]))

    @property
    def environment(self) -> dict[str, str]:
        """Variables that tell processes this pace."""
        return {_VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def of_environment(cls) -> "Pace":
        """Return the pace that this process was told."""
        found = json.loads(os.environ[_VARIABLE])
        steps = {int(rows): seconds for rows, seconds in found.pop("step_seconds").items()}
        return cls(step_seconds=steps, **found)


class Dilated:
    """Makes what a thread computes take longer."""

    def __init__(self, dilation: float) -> None:
        self._dilation = dilation
        self._since = time.thread_time()

    def catch_up(self, more: float = 0.0) -> float:
        """Sleep for what this thread has computed since the last time, and for ``more`` seconds.

        Returns the seconds, here, that both take together. ``more`` is in seconds of the simulated
        machine.
        """
        computed = time.thread_time() - self._since
        time.sleep((self._dilation - 1) * computed + self._dilation * more)
        self._since = time.thread_time()
        return self._dilation * (computed + more)
