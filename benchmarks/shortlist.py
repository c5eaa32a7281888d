"""Measure what a shortlist gains, beside CTranslate2's vocabulary map with the same lists.

    python benchmarks/shortlist.py --source train.en.gz --target train.pt.gz --json shortlist.json
    python benchmarks/shortlist.py --subjects opus --preset tiny --vocabulary 2000    # a trial

A shortlist lets a search look only at the target tokens that are likely for the source's tokens.
CTranslate2 has the same as a vocabulary map, but joins the lists of a batch into one, so that it
gains less where they overlap less. Both get the same weights in int8 and the same lists, and run in
this process. The fastest setting of each is found, and with it they take turns. A ratio is the
median, over the rounds, of one's sentences a second divided by the other's.

First, 32 sentences are translated to check that no translation has a token outside its list, and
to find the share of tokens that engines choose alike. CTranslate2 gets the sentences one by one,
so that its lists are ours (ours are cut for very long sources), and then in one batch, whose list
joins all. A seeded model's choices are near ties, which int8 decides either way: for such a model,
CTranslate2 in float32 tells whether both sides look at the same lists.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.data.tokenizer import END
from measuring import machine
from measuring.contenders import (
    Contender,
    add_round_arguments,
    best_settings,
    in_turns,
    ratios,
    rows_for,
    sentences_for,
    share_alike,
    spread,
)
from measuring.names import CTRANSLATE2, DRAGOMAN, MAPPED, SHORTLISTED
from peers import in_process
from subjects import catalogue, listed
from subjects.listed import LEARNT, OPUS, VOCABULARY, learnt, opus
from subjects.seeded import export
from subjects.subject import Subject, Text

RATIOS = {
    "dragoman with ÷ without a shortlist": (SHORTLISTED, DRAGOMAN),
    "dragoman ÷ CTranslate2, both with lists": (SHORTLISTED, MAPPED),
    "CTranslate2 with ÷ without a map": (MAPPED, CTRANSLATE2),
    "dragoman ÷ CTranslate2, both without": (DRAGOMAN, CTRANSLATE2),
}
FLOAT32, TOGETHER = "ctranslate2, map, float32", "ctranslate2, map, one batch"
ALIKE = [
    (DRAGOMAN, CTRANSLATE2),
    (SHORTLISTED, MAPPED),
    (SHORTLISTED, FLOAT32),
    (MAPPED, FLOAT32),
    (SHORTLISTED, TOGETHER),
]
COMPARED = 32
"""Sentences whose lists and translations are compared before anything is timed."""


@dataclass(frozen=True)
class Field:
    """All engines that take part, for one model."""

    subject: Subject
    shortlist: Shortlist
    bundles: dict[str, UncheckedBundle]
    ctranslate2: in_process.CTranslate2

    @classmethod
    def write(cls, subject: Subject, shortlist: Shortlist, directory: Path) -> "Field":
        """Write both bundles anew, so that they differ in nothing but the lists."""
        sample = [list(text.ids) for text in subject.texts(32, seed=1)]
        lists = {DRAGOMAN: None, SHORTLISTED: shortlist}
        bundles = {
            name: export(subject.model, "int8", directory / name, sample, each)
            for name, each in lists.items()
        }
        theirs = in_process.CTranslate2(subject.model, directory, "int8", shortlist)
        return cls(subject, shortlist, bundles, theirs)

    def ours(self, beam: int, stack: ExitStack) -> list[Contender]:
        found = []
        for name, bundle in self.bundles.items():
            engines = in_process.engines(self.subject, bundle, beam, rows_for(beam))
            found += [replace(c, engine=name) for c in stack.enter_context(engines)]
        return found

    def theirs(self, beam: int, concurrent: int) -> list[Contender]:
        contenders, forced = self.ctranslate2.contenders, self.subject.forced
        return [
            replace(c, engine=name)
            for name, use_map in ((CTRANSLATE2, False), (MAPPED, True))
            for c in contenders(forced, beam, concurrent, use_map)
        ]

    def listed(self, text: Text) -> set[int]:
        """Return the map's tokens for a sentence. Our list has fewer where a source is long."""
        likely = self.shortlist.likely[list(text.ids)]
        return {*self.shortlist.always.tolist(), *likely.ravel().tolist()} - {-1}


def candidates(field: Field, texts: Sequence[Text]) -> dict[str, Any]:
    lists = [field.shortlist.tokens_for(text.ids) for text in texts]
    ours = [{*each.tolist()} for each in lists if each is not None]
    theirs = [field.listed(text) for text in texts]
    found: dict[str, Any] = {"sentences": len(texts)}
    found["vocabulary"] = field.subject.model.target_vocabulary
    for name, sets in ((SHORTLISTED, ours), (MAPPED, theirs)):
        found[name] = {"mean": statistics.mean(map(len, sets)), "union": len(set().union(*sets))}
    return found


def agreement(field: Field, beam: int, ours: Sequence[Contender]) -> dict[str, float]:
    """Return the share of tokens that two engines choose alike, for the pairs of ``ALIKE``.

    Ends the run if a translation has a token outside its list.
    """
    subject, texts = field.subject, field.subject.texts(COMPARED, seed=COMPARED)
    found: dict[str, Any] = {}
    for contenders, concurrent in ((ours, COMPARED), (field.theirs(beam, 1), 1)):
        one_setting = {c.engine: c for c in contenders}
        found |= {name: c.run(texts, concurrent) for name, c in one_setting.items()}
    whole = {c.setting: c for c in field.theirs(beam, COMPARED) if c.engine == MAPPED}
    found[TOGETHER] = whole[f"1 × 1, batches of {COMPARED} examples"].run(texts, COMPARED)
    with tempfile.TemporaryDirectory() as directory:
        exact = in_process.CTranslate2(subject.model, Path(directory), "float32", field.shortlist)
        judge = exact.contenders(subject.forced, beam, 1, use_map=True)[0]
        found[FLOAT32] = judge.run(texts, 1)
    for name in (SHORTLISTED, MAPPED):
        for text, ids in zip(texts, found[name], strict=True):
            may_be_any = name == SHORTLISTED and field.shortlist.tokens_for(text.ids) is None
            if {token for token in ids if token > END} - field.listed(text) and not may_be_any:
                raise SystemExit(f"{name}: a translation has a token outside its list")
    most = None if subject.forced is None else subject.forced - 1  # the last may be the end token
    cut = {name: [_comparable(ids[:most]) for ids in each] for name, each in found.items()}
    return {f"{one} as {other}": share_alike(cut[one], cut[other]) for one, other in ALIKE}


def _comparable(ids: Sequence[int]) -> list[int]:
    """Return ids with -1 for special tokens, which have no ids in CTranslate2's answers."""
    return [token if token > END else -1 for token in ids]


def measure(field: Field, beam: int, wanted: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the figures for each number of sentences at a time."""
    with ExitStack() as stack:
        ours = field.ours(beam, stack)
        alike = agreement(field, beam, ours)
        show_agreement(field.subject.name, beam, alike)
        for concurrent in wanted.concurrent:
            texts = field.subject.texts(sentences_for(beam, concurrent), seed=concurrent)
            everyone = [*ours, *field.theirs(beam, concurrent)]
            chosen = best_settings(everyone, texts, concurrent, wanted.tries)
            figures = in_turns(chosen, texts, concurrent, wanted.rounds)
            yield {
                "subject": field.subject.name,
                "precision": "int8",
                "beam": beam,
                "concurrent": concurrent,
                "agreement": alike,
                "engines": {name: one.summary() for name, one in figures.items()},
                "ratios": {
                    name: spread(ratios(figures[one], figures[other]))
                    for name, (one, other) in RATIOS.items()
                },
            }


def show_lists(name: str, found: dict[str, Any]) -> None:
    print(f"\n{name}, tokens of a list, out of {found['vocabulary']:,}")
    for engine in (SHORTLISTED, MAPPED):
        print(
            f"  {engine:20s} {found[engine]['mean']:8.0f} for a sentence, "
            f"{found[engine]['union']:,} for {found['sentences']} sentences together"
        )


def show_agreement(name: str, beam: int, alike: dict[str, float]) -> None:
    print(f"\n{name} int8 beam {beam}, tokens chosen alike")
    for pair, share in alike.items():
        print(f"  {share:4.0%} {pair}")


def show(entry: dict[str, Any]) -> None:
    print(f"\n{entry['subject']} int8 beam {entry['beam']}, {entry['concurrent']} at a time")
    for name, one in entry["engines"].items():
        print(
            f"  {name:20s} {one['sentences_per_second']:8.2f} sentences/s "
            f"({one['least']:.2f}–{one['most']:.2f})  [{one['setting']}]"
        )
    for name, one in entry["ratios"].items():
        print(f"  {name:40s} {one['median']:7.2f}x ({one['least']:.2f}–{one['most']:.2f})")
    sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=listed.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = (*LEARNT, OPUS)
    parser.add_argument(
        "--subjects", nargs="+", choices=every, default=every, help="models to measure; see below"
    )
    parser.add_argument(
        "--source",
        type=Path,
        help="source side of the parallel text that lists are learnt from; may be gzip",
    )
    parser.add_argument(
        "--target",
        type=Path,
        help="target side of the parallel text that lists are learnt from; may be gzip",
    )
    parser.add_argument(
        "--beams",
        type=int,
        nargs="+",
        default=[1, 4],
        help="beam sizes; 1 is greedy search (default: %(default)s)",
    )
    parser.add_argument(
        "--concurrent",
        type=int,
        nargs="+",
        default=[1, 8, 32],
        help="numbers of sentences that are translated at a time (default: %(default)s)",
    )
    add_round_arguments(parser)
    catalogue.add_arguments(parser, "opus", VOCABULARY)
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    return parser.parse_args()


def main() -> None:
    wanted = arguments()
    about = machine.describe()
    machine.warn_if_busy(about)
    print(f"{about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB")
    compared: dict[str, Any] = {}
    entries: list[dict[str, Any]] = []
    for name in wanted.subjects:
        if name in LEARNT and not (wanted.source and wanted.target):
            print(f"{name} is skipped: its lists are learnt from --source and --target")
            continue
        subject, shortlist = (
            opus(wanted.preset, wanted.vocabulary)
            if name == OPUS
            else learnt(name, wanted.source, wanted.target)
        )
        with tempfile.TemporaryDirectory() as directory:
            field = Field.write(subject, shortlist, Path(directory))
            lists = candidates(field, subject.texts(COMPARED, seed=COMPARED))
            compared[name] = {"what": subject.what, "candidates": lists}
            show_lists(name, lists)
            for beam in wanted.beams:
                for entry in measure(field, beam, wanted):
                    show(entry)
                    entries.append(entry)
    if wanted.json:
        content = {"machine": about, "subjects": compared, "rounds": wanted.rounds}
        content["entries"] = entries
        wanted.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
