"""Golden decodings: what the graphs gave for some sentences when a bundle was verified.

The exporter writes them, and whoever loads the bundle replays them (``runtime.checks.golden``).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.tables import check_within, from_table
from dragoman_server.errors import BundleError

GOLDEN = "golden.json"


@dataclass(frozen=True, kw_only=True)
class Golden:
    """A sentence with what the graphs made of it when the bundle was verified."""

    source: list[int]
    """Tokens of the source, without the end token."""
    limit: int
    """Most tokens that the translation was allowed to have, its end token included."""
    ids: list[int]
    """Tokens of the translation, found greedily, without begin and end."""
    token_log_probs: list[float]
    """Log-probability of each token of the translation, the end token last."""
    start: list[int] = field(default_factory=list)
    """Tokens that follow the begin token and are no part of the translation."""


def write_golden(path: Path, golden: Sequence[Golden]) -> None:
    """Write golden decodings as a file of a bundle."""
    entries = [{k: v for k, v in asdict(each).items() if v or k != "start"} for each in golden]
    path.write_text(json.dumps({"sentences": entries}, indent=1) + "\n")


def read_golden(path: Path, manifest: Manifest) -> list[Golden]:
    """Read golden decodings. Raises ``BundleError`` for what does not fit the model."""
    try:
        golden = [
            from_table(Golden, entry)
            for entry in json.loads(path.read_text(encoding="utf-8"))["sentences"]
        ]
        if not golden:
            raise ValueError("no sentence")
        for entry in golden:
            _check_golden(entry, manifest)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not golden decodings ({error})") from None
    return golden


def _check_golden(golden: Golden, manifest: Manifest) -> None:
    sizes = manifest.dimensions
    for ids, vocabulary in (
        (golden.source, sizes.source_vocabulary),
        ([*golden.start, *golden.ids], sizes.target_vocabulary),
    ):
        for token in ids:
            check_within(0, vocabulary - 1, "a token", token)
    check_within(0, manifest.max_source_tokens - 1, "source tokens", len(golden.source))
    check_within(1, manifest.max_target_tokens - len(golden.start), "limit", golden.limit)
    if len(golden.token_log_probs) != len(golden.ids) + 1:
        raise ValueError("not one log-probability for each token")
