"""A shortlist beside none, and beside CTranslate2's vocabulary map: same weights, lists and run.

    python benchmarks/shortlist.py --source train.en.gz --target train.pt.gz --json shortlist.json
    python benchmarks/shortlist.py --subjects opus --preset tiny --vocabulary 2000    # a trial

A shortlist lets a search look only at the target tokens that are likely for one of the source's.
CTranslate2 has the same as a map, with one list for a whole batch. Both are given the same lists,
int8, in this process; each has the setting that is best for it, found in the same run; then they
take turns. A ratio is the median of the rounds' ratios of sentences a second.

What the subjects and their lists are is in ``subjects/listed.py``, and at the end of ``--help``.
How far the lists of a batch overlap decides what a map is worth.

Before anything is timed it is checked that no translation has a token outside its list, and the
share of tokens that two choose alike is found, of 32 sentences. CTranslate2 gets each alone, where
its list is the same as ours but for sources so long that ours is cut; then also all in one batch,
where each has the lists of all. Choices of a seeded model are near ties, which int8 decides
either way: there CTranslate2 in float32 tells whether lists are the same.
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

from compare import rows_for, sentences_for
from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.data.tokenizer import END
from measuring import machine
from measuring.contenders import Contender, best_settings, in_turns, ratios, spread
from peers import in_process
from subjects import listed
from subjects.catalogue import Subject, Text
from subjects.listed import LEARNT, OPUS, VOCABULARY, learnt, opus
from subjects.seeded import export

OURS, LISTED = "dragoman", "dragoman, shortlist"
THEIRS, MAPPED = "ctranslate2", "ctranslate2, map"
RATIOS = {
    "shortlist beside none": (LISTED, OURS),
    "shortlist beside map": (LISTED, MAPPED),
    "map beside none": (MAPPED, THEIRS),
    "none beside none": (OURS, THEIRS),
}
FLOAT32, TOGETHER = "ctranslate2, map, float32", "ctranslate2, map, one batch"
ALIKE = [(OURS, THEIRS), (LISTED, MAPPED), (LISTED, FLOAT32), (MAPPED, FLOAT32), (LISTED, TOGETHER)]
COMPARED = 32
"""Sentences whose lists and translations are looked at."""


@dataclass(frozen=True)
class Field:
    """Everyone who takes part, for one subject."""

    subject: Subject
    shortlist: Shortlist
    bundles: dict[str, UncheckedBundle]
    ctranslate2: in_process.CTranslate2

    @classmethod
    def write(cls, subject: Subject, shortlist: Shortlist, directory: Path) -> "Field":
        """Both bundles anew, so that nothing but the lists is different."""
        sample = [list(text.ids) for text in subject.texts(32, seed=1)]
        lists = {OURS: None, LISTED: shortlist}
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
            for name, use_map in ((THEIRS, False), (MAPPED, True))
            for c in contenders(forced, beam, concurrent, use_map)
        ]

    def listed(self, text: Text) -> set[int]:
        """What the map has for a sentence; ours cuts some of it where a source is long."""
        likely = self.shortlist.likely[list(text.ids)]
        return {*self.shortlist.always.tolist(), *likely.ravel().tolist()} - {-1}


def candidates(field: Field, texts: Sequence[Text]) -> dict[str, Any]:
    lists = [field.shortlist.tokens_for(text.ids) for text in texts]
    ours = [{*each.tolist()} for each in lists if each is not None]
    theirs = [field.listed(text) for text in texts]
    found: dict[str, Any] = {"sentences": len(texts)}
    found["vocabulary"] = field.subject.model.target_vocabulary
    for name, sets in ((LISTED, ours), (MAPPED, theirs)):
        found[name] = {"mean": statistics.mean(map(len, sets)), "union": len(set().union(*sets))}
    return found


def agreement(field: Field, beam: int, ours: Sequence[Contender]) -> dict[str, float]:
    """The share of tokens that two choose alike. Ends the run where a list is not kept to."""
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
    for name in (LISTED, MAPPED):
        for text, ids in zip(texts, found[name], strict=True):
            may_be_any = name == LISTED and field.shortlist.tokens_for(text.ids) is None
            if {token for token in ids if token > END} - field.listed(text) and not may_be_any:
                raise SystemExit(f"{name}: a translation has a token outside its list")
    most = None if subject.forced is None else subject.forced - 1  # the last may be the end token
    cut = {name: [_comparable(ids[:most]) for ids in each] for name, each in found.items()}
    return {f"{one} as {other}": _alike(cut[one], cut[other]) for one, other in ALIKE}


def _comparable(ids: Sequence[int]) -> list[int]:
    """Special tokens, which a seeded model does say, have no ids in CTranslate2's answers."""
    return [token if token > END else -1 for token in ids]


def _alike(ours: list[list[int]], theirs: list[list[int]]) -> float:
    pairs = list(zip(ours, theirs, strict=True))
    same = sum(a == b for one, other in pairs for a, b in zip(one, other, strict=False))
    return same / sum(max(len(one), len(other)) for one, other in pairs)


def measure(field: Field, beam: int, wanted: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """An entry for each number of sentences at a time."""
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
    print(f"\n{name}, candidates among {found['vocabulary']:,} tokens; a map cuts no lists")
    for engine in (LISTED, MAPPED):
        print(
            f"  {engine:20s} {found[engine]['mean']:8.0f} a sentence, "
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
        print(f"  {name:21s} {one['median']:7.2f}x ({one['least']:.2f}–{one['most']:.2f})")
    sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=listed.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = (*LEARNT, OPUS)
    parser.add_argument("--subjects", nargs="+", choices=every, default=every)
    parser.add_argument(
        "--source", type=Path, help="source of parallel text, a sentence a line; may be gzip"
    )
    parser.add_argument(
        "--target", type=Path, help="target of parallel text, a sentence a line; may be gzip"
    )
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--concurrent", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--tries", type=int, default=2, help="runs of each setting, to find the best"
    )
    parser.add_argument("--preset", default="base", help="size of the seeded model opus")
    parser.add_argument(
        "--vocabulary", type=int, default=VOCABULARY, help="tokens of the vocabulary of opus"
    )
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
            print(f"{name} is skipped: --source and --target name the text its lists come from")
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
