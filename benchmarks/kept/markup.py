"""Measure whether what is not for the model survives: tags, terms of a glossary, templates.

    dragoman serve models/en-pt &
    python benchmarks/kept/markup.py tags --text test.en.gz
    python benchmarks/kept/markup.py aligned
    python benchmarks/kept/markup.py terms --text test.en.gz \\
        --dictionary dictionary.en.gz dictionary.pt.gz
    python benchmarks/kept/markup.py templates --text test.en.gz

*tags* wraps random words of real sentences in tags, and counts the translations in which each tag
is back, balanced, around a text that is not empty; the text without tags has to be the translation
of the plain sentence. *aligned* compares what stands in the tags with words that a person chose, in
aligned.tsv. *terms* asks for other translations of words than the model's own, and *templates* puts
``{name}``, ``%s``, ``${x}``, addresses of pages and of people into sentences.
"""

import argparse
import html
import random
import re
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

from dragoman_client import Client, Options, Translation, WarningCode
from dragoman_training.data.text.corpus import read_lines

ALIGNED = Path(__file__).with_name("aligned.tsv")
TEMPLATES = (
    *("{name}", "{0}", "{{count}}", "%s", "%d", "%(user)s", "${x}", "${HOME}", "%1$s"),
    *("https://example.org/a?b=c&d=e#f", "www.example.com/Path_(x)", "ana.silva@example.org"),
    *("http://localhost:8080/v2/x.html", "info@mail.example.com"),
)
_TAG = re.compile(r"<!--.*?-->|<[^<>]*>")
_EMPTY = ("<img src='x.png'>", "<x2/>", "<!-- a note -->")
_NAMES = ("b", "i", "em", "strong", "u", "span class='x'", "a href='https://example.org/'")


def sentences(path: Path, count: int, seed: int = 1) -> list[str]:
    """Return random sentences of 5 words or more that have no markup of their own."""
    fit = [
        line
        for line in islice(read_lines(path), 200_000)
        if 5 <= len(line.split()) <= 60 and not re.search(r"[<>&{}%$@]|://|www\.", line)
    ]
    return random.Random(seed).sample(fit, min(count, len(fit)))  # noqa: S311


def marked(sentence: str, draw: random.Random) -> str:
    """Return a sentence with one to three elements around words of it, and perhaps a point."""
    words = sentence.split(" ")
    before: list[list[str]] = [[] for _ in range(len(words))]
    after: list[list[str]] = [[] for _ in range(len(words))]
    free = list(range(len(words)))
    for _ in range(draw.randint(1, 3)):
        if not free:
            break
        first = draw.choice(free)
        last = first
        while last + 1 in free and last - first < 4 and draw.random() < 0.6:
            last += 1
        free = [place for place in free if not first <= place <= last]
        name = draw.choice(_NAMES)
        before[first].append(f"<{name}>")
        after[last].append(f"</{name.split()[0]}>")
        if last > first and draw.random() < 0.3:
            before[last].append("<q>")
            after[last].insert(0, "</q>")
    if draw.random() < 0.3:
        before[draw.randrange(len(words))].insert(0, draw.choice(_EMPTY))
    return " ".join(
        "".join((*opened, html.escape(word, quote=False), *closed))
        for opened, word, closed in zip(before, words, after, strict=True)
    )


class _Checker(HTMLParser):
    """Looks whether elements are closed in the order in which they were opened, and have text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._opened: list[tuple[str, int]] = []
        self._letters = 0
        self.is_right = True
        self.feed(text)
        self.close()
        self.is_right &= not self._opened

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "img":
            self._opened.append((tag, self._letters))

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self._opened:
            self.is_right = False
            return
        opened, letters = self._opened.pop()
        self.is_right &= opened == tag and letters < self._letters

    def handle_data(self, data: str) -> None:
        self._letters += len(data.strip())


def run(client: Client, texts: Sequence[str], options: Options) -> list[Translation]:
    found = []
    for result in client.translate_many(texts, options=options, target_language="pt"):
        if not isinstance(result, Translation):
            raise SystemExit(f"a call failed: {result}")
        found.append(result)
    return found


def measure_tags(arguments: argparse.Namespace, client: Client) -> Iterator[str]:
    draw = random.Random(2)  # noqa: S311
    plain = sentences(arguments.text, arguments.count)
    texts = [marked(sentence, draw) for sentence in plain]
    made = run(client, texts, Options(markup="html"))
    of_plain = run(client, plain, Options())
    right = same = tags = 0
    for text, found, alone in zip(texts, made, of_plain, strict=True):
        before, after = _TAG.findall(text), _TAG.findall(found.text)
        is_right = sorted(before) == sorted(after) and _Checker(found.text).is_right
        is_same = html.unescape(_TAG.sub("", found.text)) == alone.text
        right, same, tags = right + is_right, same + is_same, tags + len(before)
        if not (is_right and is_same):
            yield f"{text}\n    {found.text}\n    {alone.text}"
    print(
        f"{len(texts)} sentences with {tags} tags: in {right} each tag is back, balanced and "
        f"around text; {same} have the text of the plain sentence"
    )


def measure_aligned(arguments: argparse.Namespace, client: Client) -> Iterator[str]:
    rows = [line.split("\t") for line in read_lines(ALIGNED)]
    made = run(client, [text for text, _ in rows], Options(markup="html"))
    right = other = 0
    for (text, accepted), found in zip(rows, made, strict=True):
        words = [each.lower() for each in accepted.split("|")]
        inside = re.findall(r"<b>(.*?)</b>", found.text)
        if not any(each in _TAG.sub("", found.text).lower() for each in words):
            other += 1
            yield f"{text}\n    {found.text}\n    (translated otherwise than when it was aligned)"
        elif len(inside) == 1 and inside[0].lower() in words:
            right += 1
        else:
            yield f"{text}\n    {found.text}\n    {accepted}"
    print(
        f"{len(rows)} tags: {right} stand around the right words, {other} can't be told because "
        "the translation is another one"
    )


def measure_terms(arguments: argparse.Namespace, client: Client) -> Iterator[str]:
    texts = sentences(arguments.text, 20_000)
    first: dict[str, str] = {}
    pairs = zip(*map(read_lines, arguments.dictionary), strict=True)
    for source, target in pairs:
        if re.fullmatch(r"[a-z]{4,}(?: [a-z]{3,}){0,2}", source) and target.strip():
            first.setdefault(source, target.strip())
    used: list[tuple[str, str, str]] = []
    seen: set[str] = set()
    for text in texts:
        words = re.findall(r"[a-z]+", text)
        spans = [" ".join(words[at : at + n]) for n in (3, 2, 1) for at in range(len(words))]
        term = next((s for s in spans if s in first and s not in seen and f" {s} " in text), None)
        if term and len(used) < arguments.count:
            seen.add(term)
            used.append((text, term, "" if len(used) % 3 == 0 else first[term]))
    kept = alone = flagged = silent = 0
    plain = run(client, [text for text, _, _ in used], Options())
    for (text, term, target), without in zip(used, plain, strict=True):
        found = client.translate(
            text, target_language="pt", options=Options(glossary={term: target})
        )
        wanted = (target or term).lower()
        is_there = wanted in found.text.lower()
        warned = any(each.code is WarningCode.GLOSSARY for each in found.warnings)
        kept, alone = kept + is_there, alone + (wanted in without.text.lower())
        flagged, silent = flagged + (warned and not is_there), silent + (not warned | is_there)
        if not is_there:
            yield f"{term} = {target}: {text}\n    {found.text}"
    print(
        f"{len(used)} terms: {kept} stand as the glossary says, {alone} without it; of the others "
        f"{flagged} have a warning, {silent} have none"
    )


def measure_templates(arguments: argparse.Namespace, client: Client) -> Iterator[str]:
    draw = random.Random(3)  # noqa: S311
    texts, put = [], []
    for sentence in sentences(arguments.text, arguments.count):
        words = sentence.split(" ")
        chosen = draw.sample(TEMPLATES, draw.randint(1, 2))
        for each in chosen:
            words.insert(draw.randrange(1, len(words)), each)
        texts.append(" ".join(words))
        put.append(chosen)
    right = 0
    for text, chosen, found in zip(texts, put, run(client, texts, Options()), strict=True):
        if all(found.text.count(each) == text.count(each) for each in chosen):
            right += 1
        else:
            yield f"{text}\n    {found.text}"
    print(f"{len(texts)} sentences: {right} have all of it byte for byte")


Measure = Callable[[argparse.Namespace, Client], Iterator[str]]
MEASURES: dict[str, tuple[Measure, int]] = {
    "tags": (measure_tags, 500),
    "aligned": (measure_aligned, 100),
    "terms": (measure_terms, 300),
    "templates": (measure_templates, 2000),
}
"""Each measure, and how many sentences it takes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measure", choices=MEASURES, help="what is measured")
    parser.add_argument("--text", type=Path, help="English text, a sentence a line")
    parser.add_argument(
        "--dictionary",
        type=Path,
        nargs=2,
        metavar=("EN", "PT"),
        help="words and their translations, line by line; for terms",
    )
    parser.add_argument("--count", type=int, help="number of sentences or terms")
    parser.add_argument(
        "--show", type=int, default=10, help="number of failures to print (default: %(default)s)"
    )
    parser.add_argument(
        "--address",
        default="localhost:50051",
        help="address of a server of models/en-pt (default: %(default)s)",
    )
    arguments = parser.parse_args()
    if arguments.text is None and arguments.measure != "aligned":
        parser.error(f"{arguments.measure} needs --text")
    if arguments.dictionary is None and arguments.measure == "terms":
        parser.error("terms needs --dictionary")
    measure, count = MEASURES[arguments.measure]
    arguments.count = arguments.count or count
    with Client(arguments.address, timeout=600) as client:
        failures = list(measure(arguments, client))
    print(*failures[: arguments.show], sep="\n")


if __name__ == "__main__":
    main()
