"""Golden sentences alone and side by side: do the others in a batch change a sentence here?

What a step gives for a row must not depend on the other rows, to the last bit. The exporter proves
it on its machine; kernels of onnxruntime differ from CPU to CPU, so it is checked again here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman_server.bundle.golden import Golden
from dragoman_server.bundle.reading import Bundle
from dragoman_server.errors import BundleError
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.reference_search import encode
from dragoman_server.runtime.results import StepResult

_CANDIDATES = 4
"""Best tokens that are compared."""


@dataclass(frozen=True)
class RowBits:
    """All that a step gives for a row, to the last bit."""

    rating: bytes
    """The best tokens with their log-probabilities, and whether the row has finite numbers."""
    alignment: bytes
    """Weight of each source position."""


def row_bits(result: StepResult, row: int, source_length: int) -> RowBits:
    """Return what a step gave for a row."""
    return RowBits(
        result.top_ids[row].tobytes()
        + result.top_log_probs[row].tobytes()
        # Of the sum itself only this is ever used.
        + bytes([bool(np.isfinite(result.row_sums[row]))]),
        result.alignment[row, :source_length].tobytes(),
    )


def alignments_depend_on_company(bundle: Bundle, graphs: Graphs) -> bool:
    """Decode golden sentences alone, then side by side, and tell whether alignments differ.

    Raises ``BundleError`` if tokens or scores differ. Graphs of one row have no company, and
    float16 promises nothing.
    """
    golden = bundle.golden
    count = min(graphs.settings.rows, max(2, len(golden)))
    if count < 2 or bundle.manifest.precision == "float16":
        return False
    sentences = [golden[number % len(golden)] for number in range(count)]
    alone = [_steps(graphs, [each])[0] for each in sentences]
    together = _steps(graphs, sentences)
    for number, (own, among) in enumerate(zip(alone, together, strict=True), start=1):
        if [bits.rating for bits in own] != [bits.rating for bits in among]:
            raise BundleError(
                f"{bundle.path}: golden sentence {number} has other scores in a batch of {count} "
                "than alone on this CPU"
            )
    return alone != together


def _steps(graphs: Graphs, golden: Sequence[Golden]) -> list[list[RowBits]]:
    """Feed golden decodings side by side, and return what each step of each gave."""
    begin = graphs.manifest.special_ids.begin
    lines = [[begin, *each.start, *each.ids] for each in golden]
    lengths = encode(graphs, [each.source for each in golden])
    seen: list[list[RowBits]] = [[] for _ in golden]
    for past in range(max(map(len, lines))):
        # A row that is through is fed its last token again: it keeps the others company.
        at = np.array([min(past, len(line) - 1) for line in lines])
        tokens = np.array([line[place] for line, place in zip(lines, at, strict=True)])
        result = graphs.step(tokens, at, lengths, candidates=_CANDIDATES)
        for row, line in enumerate(lines):
            if past < len(line):
                seen[row].append(row_bits(result, row, int(lengths[row])))
    return seen
