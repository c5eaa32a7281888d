"""A worker whose graphs sleep instead of computing. All else of it is what a server's is.

    python -m simulation.worker DESCRIPTOR

Its translations are made up: as many tokens as the source has, and no two alike beside each other,
so that nobody thinks that they repeat themselves.
"""

import numpy as np
import onnxruntime as ort

from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.lane import Lane
from dragoman_server.engine.workers import worker
from dragoman_server.engine.workers.channel import Channel
from dragoman_server.engine.workers.messages import PREPARED
from dragoman_server.engine.workers.opening import Opened, Opening
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.results import EncodeResult, StepResult
from simulation.pace import Dilated, Pace

_FIRST_WORD, _WORDS = 300, 5000
"""Tokens that translations are made of: ordinary pieces of the repository's model."""


class SleepingGraphs(Graphs):
    """Graphs with memory, bindings and sessions as usual, none of which is ever run."""

    pace: Pace
    dilated: Dilated
    _result_of_step: StepResult | None = None
    _positions = 0
    """Positions that the encoder would compute."""

    def encode(
        self, source_ids: Ints, source_lengths: Ints, sentences: Ints, rows: Ints
    ) -> EncodeResult:
        self._positions = source_ids.size
        return super().encode(source_ids, source_lengths, sentences, rows)

    def _result(self, *arguments: object) -> StepResult:
        self._result_of_step = super()._result(*arguments)  # type: ignore[arg-type]
        return self._result_of_step

    def _run(self, session: ort.InferenceSession, binding: ort.IOBinding) -> float:
        seconds = 0.0
        if session is self._sessions.encoder:
            seconds = self._positions * self.pace.encode_seconds
        elif session is not self._sessions.move:
            assert self._result_of_step is not None
            self._make_up(self._result_of_step)
            seconds = self.pace.step(len(self._result_of_step.top_ids))
        slept = self.dilated.catch_up(seconds)
        self.seconds += slept
        return slept

    def _make_up(self, result: StepResult) -> None:
        """Let each row end when its translation is as long as its source, and go on before."""
        count = len(result.top_ids)
        past = self._inputs._memory["past_lengths"][:count].astype(np.int64)
        last = self._inputs._memory["source_ends"][:count]
        words = _FIRST_WORD + (np.arange(count) * 977 + past * 131) % _WORDS
        result.top_ids[:, 0] = np.where(past >= last, self.manifest.special_ids.end, words)
        result.top_log_probs[:] = -0.1
        result.given_log_probs[:] = -0.1
        result.row_sums[:] = 0.0


def open_lane(opening: Opening, channel: Channel) -> tuple[Lane, Opened]:
    """Make a lane that sleeps. What it says is not checked, as it is made up."""
    if opening.prepares_in is not None:
        channel.send((PREPARED, None))
    bundle = read_bundle(opening.bundle)
    graphs = SleepingGraphs(bundle, GraphSettings(rows=opening.rows))
    graphs.pace = Pace.of_environment()
    graphs.dilated = Dilated(graphs.pace.dilation)
    worker._HELD_SECONDS *= graphs.pace.dilation
    worker._TURN_SECONDS *= graphs.pace.dilation
    lane = Lane(graphs, opening.lane)
    return lane, Opened(0.0, False, graphs.buffer_bytes + lane.rows.bytes)


if __name__ == "__main__":
    worker.main(open_lane)
