"""Check on real files that documents come back as they were.

Every document below the folders is taken apart and written three times: without translations and
with each segment as its own translation, which have to give the same bytes; and with every segment
written anew, which has to give the same segments, the same text with the same formats, and all
other members of a zip as they were. Files that are refused are counted with the reason.

    python benchmarks/documents/round_trip.py FOLDER... [--formats docx,odt] [--json FILE]

Ends with exit code 1 where a file comes back otherwise, fails with anything but a DocumentError, or
takes more than --seconds of computing.
"""

import argparse
import io
import json
import re
import time
import traceback
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree, html

from dragoman_documents import FORMATS, Document, DocumentError, format_of, open_document

ADDED = ("po", "xliff")
"""Formats in which translations stand beside their sources, so that writing them adds text."""
RUNS = ("docx", "pptx", "xlsx")
"""Formats whose paragraphs are made of runs."""
UNSEEN = ("lang", "noProof", "webHidden", "bCs", "iCs", "szCs", "rtl", "cs")
"""What no reader sees of a format; runs that differ in it only are joined."""
PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)


@dataclass
class Outcome:
    """What became of one file."""

    kind: str
    segments: int = 0
    refused: str = ""
    wrong: str = ""
    seconds: float = 0.0


def check(path: Path, kind: str) -> Outcome:
    """Take a file apart and put it together again in all ways."""
    outcome = Outcome(kind)
    begun = time.process_time()
    try:
        data = path.read_bytes()
        document = open_document(data, kind)
        outcome.segments = len(document.segments)
        outcome.wrong = compare(document, data, kind)
    except DocumentError as error:
        outcome.refused = str(error)
    except Exception:
        outcome.wrong = traceback.format_exc()
    outcome.seconds = time.process_time() - begun
    return outcome


def compare(document: Document, data: bytes, kind: str) -> str:
    """Return what is wrong with what is written, or nothing."""
    same = {segment.id: segment.text for segment in document.segments}
    if document.write({}) != data:
        return "without translations: other bytes"
    if kind in ADDED:
        written = document.write(same)
        again = open_document(written, kind)
        return f"{len(again.segments)} segments are left" if again.segments else ""
    if document.write(same) != data:
        return "with its own text: other bytes"
    written = document.write(same, rewrite=True)
    again = open_document(written, kind)
    before = [segment.text for segment in document.segments]
    after = [segment.text for segment in again.segments]
    # What is in a text box may come before or behind the paragraph that the box is in.
    if before != after and (kind not in RUNS or sorted(before) != sorted(after)):
        first = next((p for p in zip(before, after, strict=False) if p[0] != p[1]), ("", ""))
        return f"written anew: {len(before)} and {len(after)} segments; {first!r}"[:400]
    if data[:2] == b"PK":
        return compare_zips(data, written, kind)
    if kind in ("html", "xhtml"):
        return compare_pages(data, written)
    return ""


def compare_zips(data: bytes, written: bytes, kind: str) -> str:
    """Compare members: bytes of those that have no text, text and formats of the others."""
    with zipfile.ZipFile(io.BytesIO(data)) as one, zipfile.ZipFile(io.BytesIO(written)) as two:
        if one.namelist() != two.namelist():
            return "written anew: other members"
        for name in one.namelist():
            before, after = one.read(name), two.read(name)
            if before == after:
                continue
            if name.endswith((".xhtml", ".html", ".htm")):
                wrong = compare_pages(before, after)
            elif kind in RUNS:
                wrong = compare_runs(before, after)
            else:
                wrong = compare_trees(before, after)
            if wrong:
                return f"{name}: {wrong}"
    return ""


def compare_trees(before: bytes, after: bytes) -> str:
    """Compare two XML files: elements, attributes, and text but for how many spaces it has."""
    pairs = zip(flat(before), flat(after), strict=False)
    for one, two in pairs:
        if one != two:
            return f"written anew: {one!r} is {two!r}"[:400]
    return ""


def flat(data: bytes) -> Iterator[tuple[str, str, str, str]]:
    for element in etree.fromstring(data, PARSER).iter():
        attributes = repr(sorted(element.attrib.items())) if isinstance(element.tag, str) else ""
        yield str(element.tag), attributes, spaced(element.text), spaced(element.tail)


def spaced(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "")


def compare_runs(before: bytes, after: bytes) -> str:
    """Compare two XML files of Office: each letter with its format, and all elements but runs."""
    one, two = letters(before), letters(after)
    if one[0] != two[0]:
        at = next((i for i, p in enumerate(zip(one[0], two[0], strict=False)) if p[0] != p[1]), 0)
        return f"written anew: other letters near {one[0][at : at + 1]!r}"[:400]
    if one[1] != two[1]:
        return f"written anew: other elements: {(one[1] - two[1]) | (two[1] - one[1])!r}"[:400]
    return ""


def letters(data: bytes) -> tuple[list[tuple[str, str]], Counter[str]]:
    """Return all letters with their formats, and how many elements of each kind there are."""
    root = etree.fromstring(data, PARSER)
    found: list[tuple[str, str]] = []
    kinds: Counter[str] = Counter()
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        name = etree.QName(element).localname
        inside_format = any(etree.QName(e).localname == "rPr" for e in element.iterancestors())
        if name not in ("r", "rPr", "t", "proofErr", "lastRenderedPageBreak") and not inside_format:
            kinds[name] += 1
        if name == "t":
            style = format_name(element.getparent())
            found += [(letter, style) for letter in element.text or "" if not letter.isspace()]
    return found, kinds


def format_name(run: Any) -> str:
    properties = next((e for e in run if etree.QName(e).localname == "rPr"), None)
    if properties is None:
        return ""
    own = sorted(
        (k, v)
        for k, v in properties.attrib.items()
        if k not in ("lang", "altLang", "dirty", "err", "noProof", "smtClean")
    )
    children = [
        etree.tostring(e, method="c14n").decode()
        for e in properties
        if isinstance(e.tag, str) and etree.QName(e).localname not in UNSEEN
    ]
    return f"{own or ''}{''.join(children)}"


def compare_pages(before: bytes, after: bytes) -> str:
    """Compare two pages as a browser's parser reads them."""
    if not before.strip():
        return ""
    for one, two in zip(page(before), page(after), strict=False):
        if one != two:
            return f"written anew: {one!r} is {two!r}"[:400]
    return ""


def page(data: bytes) -> Iterator[tuple[str, str, str, str]]:
    try:
        root = html.document_fromstring(data)
    except (etree.ParserError, ValueError):
        return
    for element in root.iter():
        attributes = {k: spaced(v) for k, v in element.attrib.items()}
        is_tag = isinstance(element.tag, str)
        text = element.text_content() if element.tag == "title" else element.text
        yield (
            str(element.tag),
            repr(sorted(attributes.items())) if is_tag else "",
            spaced(text).strip(),
            spaced(element.tail).strip(),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folders", nargs="+", type=Path, help="folders with documents")
    parser.add_argument("--formats", default=",".join(FORMATS), help="formats, with commas")
    parser.add_argument("--most", type=int, default=10**9, help="most files of each format")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="most seconds of computing for a file"
    )
    parser.add_argument("--json", type=Path, help="file to write the outcomes to")
    given = parser.parse_args()
    wanted = set(given.formats.split(","))
    outcomes: dict[str, Outcome] = {}
    counts: Counter[str] = Counter()
    for folder in given.folders:
        for path in sorted(folder.rglob("*")):
            kind = format_of(path)
            if kind is None or kind not in wanted or not path.is_file():
                continue
            if counts[kind] >= given.most:
                continue
            counts[kind] += 1
            outcome = outcomes[str(path)] = check(path, kind)
            if outcome.seconds > given.seconds and not outcome.wrong:
                outcome.wrong = f"took {outcome.seconds:.1f} s"
            if outcome.wrong:
                print(f"{path}: {outcome.wrong}", flush=True)
    show(outcomes)
    if given.json:
        found = {name: vars(outcome) for name, outcome in outcomes.items()}
        given.json.write_text(json.dumps(found, indent=1))
    return int(any(outcome.wrong for outcome in outcomes.values()))


def show(outcomes: dict[str, Outcome]) -> None:
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes.values():
        by_kind[outcome.kind].append(outcome)
    print("| format | files | segments | as they were | refused | wrong | longest, s |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for kind, found in sorted(by_kind.items()):
        refused = sum(bool(each.refused) for each in found)
        wrong = sum(bool(each.wrong) for each in found)
        print(
            f"| {kind} | {len(found)} | {sum(each.segments for each in found):,} | "
            f"{len(found) - refused - wrong} | {refused} | {wrong} | "
            f"{max(each.seconds for each in found):.1f} |"
        )
    reasons = Counter(re.sub(r"\d[\d,.]*", "N", each.refused)[:90] for each in outcomes.values())
    for reason, count in reasons.most_common():
        if reason:
            print(f"refused, {count} times: {reason}")


if __name__ == "__main__":
    raise SystemExit(main())
