"""Compare Dragoman's speed with that of its peers, on the same weights, in the same run.

    python benchmarks/compare.py --quick                     # make bench-quick
    python benchmarks/compare.py --json compare.json         # part of make bench

Sentences are translated with 1, 8, 32 and 64 at a time by ``dragoman serve`` over gRPC, by our
engine in this process, by CTranslate2, by transformers, and by Optimum-ONNX where ``--optimum``
names a Python that has it. First, translations are compared: engines that do not do the same work
are not worth timing. Then the fastest setting of each engine is found, and with it they take
turns. A ratio is the median, over the rounds, of our sentences a second divided by the peer's.

The last line is ``ctranslate2 int8 ratios R1 R8 R32 R64``: the seeded model in greedy search over
gRPC, beside CTranslate2, by sentences at a time. With ``--quick`` the exit code is 1 where one of
them is below 0.8.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from measuring import machine
from measuring.contenders import (
    Contender,
    add_round_arguments,
    best_settings,
    in_turns,
    ratios_to_peers,
    rows_for,
    sentences_for,
    share_alike,
    show_engines,
)
from measuring.names import CTRANSLATE2, IN_PROCESS, SERVED
from peers import in_process
from peers.optimum_peer import optimum
from peers.served import options_for, served
from subjects import catalogue
from subjects.subject import Subject, Text

MIN_RATIO = 0.8
"""Ratio to CTranslate2 below which ``--quick`` ends with exit code 1."""
MIN_FLOAT32_AGREEMENT = 0.9
"""Share of tokens that a peer has to choose as we do in float32, or it does other work."""


@contextmanager
def all_contenders(
    subject: Subject,
    precision: str,
    beam: int,
    directory: Path,
    wanted: argparse.Namespace,
) -> Iterator["Field"]:
    """Start all engines that take part, for one model, precision and beam size."""
    bundle = subject.bundle(precision, directory)
    rows = rows_for(beam)
    log = directory / "servers.log"
    with ExitStack() as stack:
        found = stack.enter_context(served(bundle.path, options_for(subject, beam), rows, log))
        found += stack.enter_context(in_process.engines(subject, bundle, beam, rows))
        if "transformers" in wanted.peers:
            found += in_process.transformers(subject, beam)
        if wanted.optimum:
            found += stack.enter_context(optimum(subject, beam, wanted.optimum, directory, log))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=directory)))
        yield Field(subject, beam, found, in_process.CTranslate2(subject.model, scratch, precision))


class Field:
    """All engines that take part, for one model, precision and beam size."""

    def __init__(
        self,
        subject: Subject,
        beam: int,
        found: Sequence[Contender],
        ctranslate2: in_process.CTranslate2,
    ) -> None:
        self._subject = subject
        self._beam = beam
        self._found = found
        self._ctranslate2 = ctranslate2

    def contenders(self, concurrent: int) -> list[Contender]:
        """Return every engine with every setting for so many sentences at a time."""
        theirs = self._ctranslate2.contenders(self._subject.forced, self._beam, concurrent)
        return [*self._found, *theirs]


def agreement(subject: Subject, chosen: Sequence[Contender], texts: Sequence[Text]) -> Any:
    """Return, for each engine, the share of tokens that it chooses as ours does in process."""
    answers = {c.engine: _token_lists(subject, c, texts) for c in chosen}
    ours = answers.pop(IN_PROCESS)
    return {engine: share_alike(ours, theirs) for engine, theirs in answers.items()}


def _token_lists(
    subject: Subject, contender: Contender, texts: Sequence[Text]
) -> list[tuple[int, ...]]:
    """Return translations as ids, by way of their text, which has no special tokens.

    A seeded model does say special tokens, and not all engines give them back.
    """
    most = None if subject.forced is None else subject.forced - 1  # the last may be the end token
    found = []
    for answer in contender.run(texts, len(texts)):
        if not isinstance(answer, str):
            answer = subject.tokenizer.decode([token for token in answer[:most] if token >= 0])
        found.append(tuple(subject.tokenizer.encode(answer)))
    return found


def measure(
    field: Field, subject: Subject, precision: str, beam: int, wanted: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the figures for each number of sentences at a time."""
    for concurrent in wanted.concurrent:
        count = sentences_for(beam, concurrent)
        texts = subject.texts(count, seed=concurrent)
        chosen = best_settings(field.contenders(concurrent), texts, concurrent, wanted.tries)
        alike = agreement(subject, chosen, texts[: min(count, 16)])
        if precision == "float32":
            for engine, share in alike.items():
                if share < MIN_FLOAT32_AGREEMENT:
                    raise SystemExit(
                        f"{subject.name}, beam {beam}: {engine} chooses only {share:.0%} of the "
                        "tokens as our engine does in float32, so it does not do the same work"
                    )
        figures = in_turns(chosen, texts, concurrent, wanted.rounds)
        yield {
            "subject": subject.name,
            "precision": precision,
            "beam": beam,
            "concurrent": concurrent,
            "agreement": alike,
            "engines": {name: one.summary() for name, one in figures.items()},
            "ratios": ratios_to_peers(figures),
        }


def show(entry: dict[str, Any]) -> None:
    print(
        f"\n{entry['subject']} {entry['precision']} beam {entry['beam']}, "
        f"{entry['concurrent']} at a time"
    )
    show_engines(entry)
    alike = ", ".join(f"{name} {share:.0%}" for name, share in entry["agreement"].items())
    print(f"  tokens chosen alike: {alike}", flush=True)


def quick_ratios(entries: Sequence[dict[str, Any]]) -> list[float]:
    return [
        entry["ratios"][CTRANSLATE2][SERVED]["median"]
        for entry in entries
        if (entry["precision"], entry["beam"]) == ("int8", 1) and entry["subject"] != "en-pt"
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="measure only what the last line needs: base, int8, greedy, beside CTranslate2",
    )
    parser.add_argument(
        "--subjects",
        nargs="+",
        choices=("base", "en-pt"),
        help="models to measure: seeded, or the repository's (default: both)",
    )
    parser.add_argument(
        "--precisions",
        nargs="+",
        choices=("int8", "float32"),
        help="precisions of our weights and of CTranslate2's (default: both)",
    )
    parser.add_argument(
        "--beams", type=int, nargs="+", help="beam sizes; 1 is greedy search (default: 1 4)"
    )
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=("transformers",),
        help="peers beside CTranslate2, which always takes part (default: transformers)",
    )
    parser.add_argument(
        "--concurrent",
        type=int,
        nargs="+",
        default=[1, 8, 32, 64],
        help="numbers of sentences that are translated at a time (default: %(default)s)",
    )
    add_round_arguments(parser)
    parser.add_argument(
        "--optimum",
        type=Path,
        help="Python interpreter that has optimum-onnx; without it, it is not measured",
    )
    catalogue.add_arguments(parser)
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    found = parser.parse_args()
    quick = found.quick
    found.subjects = found.subjects or (["base"] if quick else ["base", "en-pt"])
    found.precisions = found.precisions or (["int8"] if quick else ["int8", "float32"])
    found.beams = found.beams or ([1] if quick else [1, 4])
    if found.peers is None:
        found.peers = [] if quick else ["transformers"]
    return found


def main() -> None:
    wanted = arguments()
    about = machine.describe()
    machine.warn_if_busy(about)
    makers = {
        "base": lambda: catalogue.base(wanted.preset, wanted.vocabulary),
        "en-pt": catalogue.en_pt,
    }
    entries: list[dict[str, Any]] = []
    compared: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for name in wanted.subjects:
            subject = makers[name]()
            compared[subject.name] = subject.what
            for precision in wanted.precisions:
                for beam in wanted.beams:
                    with all_contenders(subject, precision, beam, directory, wanted) as field:
                        for entry in measure(field, subject, precision, beam, wanted):
                            show(entry)
                            entries.append(entry)
    if wanted.json:
        absent = {} if wanted.optimum else {"optimum": "no Python that has it was named"}
        content = {
            "machine": about,
            "subjects": compared,
            "rounds": wanted.rounds,
            "absent": absent,
            "entries": entries,
        }
        wanted.json.write_text(json.dumps(content, indent=1) + "\n")
    found = quick_ratios(entries)
    if found:
        print("\nctranslate2 int8 ratios", *(f"{ratio:.2f}" for ratio in found), flush=True)
        sys.exit(wanted.quick and min(found) < MIN_RATIO)


if __name__ == "__main__":
    main()
