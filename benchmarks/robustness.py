"""Measure how a bundle copes with what people type: words, numbers, placeholders, capitals.

    python benchmarks/robustness.py models/en-pt words --text mono.en.gz \\
        --dictionary dictionary.en.gz dictionary.pt.gz --known mono.pt.gz
    python benchmarks/robustness.py models/en-pt numbers --text wikinews.en.gz
    python benchmarks/robustness.py models/en-pt placeholders --text mono.en.gz
    python benchmarks/robustness.py models/en-pt case --source test.en.gz --reference test.pt.gz
    python benchmarks/robustness.py models/en-pt inputs --text benchmarks/subjects/inputs.en

A real server translates over gRPC, as for any user. The figures are those of the model card;
--show says how many of the cases that count as wrong are printed. *words* compares single words
with a dictionary, *numbers* the figures in source and translation, and *placeholders* counts those
that come back exactly once; *case* tells what capitals and a missing full stop cost in chrF, and
*inputs* prints translations as a table.
"""

import argparse
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import sacrebleu

from dragoman_client import Options
from dragoman_server.text.faults import is_loop
from dragoman_server.text.numbers import Numbers, spelling_of
from dragoman_server.text.segments import has_words
from dragoman_training.data.rules.placeholders import (
    MAX_PLACEHOLDERS,
    placeholder,
    replace_shared_spans,
)
from dragoman_training.data.text.corpus import Pair, read_lines
from measuring.servers import Caller, dragoman_server

Translate = Callable[[Sequence[str]], list[str]]

FUNCTION_WORDS = (
    "a about above after again against ain all am an and any are aren as at be because been "
    "before being below between both but by can cannot could couldn d did didn do does doesn "
    "doing don down during each etc ever few for from further had hadn has hasn have haven "
    "having he her here hers herself him himself his how however i if in into is isn it its "
    "itself just ll m many may me might mightn more most much must mustn my myself n need needn "
    "no nor not now o of off often on once only or other our ours ourselves out over own per "
    "quite rather re s same shall shan she should shouldn since so some such t than that the "
    "their theirs them themselves then there therefore these they this those though through "
    "thus to too under until up upon us ve very was wasn we were weren what when where whether "
    "which while who whom whose why will with within without won would wouldn yet you your "
    "yours yourself yourselves also even still although among one two three four five six seven "
    "eight nine ten u mr mrs ms dr st "
)
"""English words that are no content words, with spaces between them."""


def content_words(text: Path, count: int) -> list[str]:
    """Return the most frequent words of an English text that are not function words or names."""
    seen: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for line in islice(read_lines(text), 400_000):
        for word in re.findall(r"[A-Za-z]+(?:-[A-Za-z]+)*", line):
            seen[word.lower()] += 1
            small[word.lower()] += word.islower()
    function_words = frozenset(FUNCTION_WORDS.split())
    return [
        word
        for word, times in seen.most_common()
        if len(word) > 1 and word not in function_words and small[word] > 0.5 * times
    ][:count]


def read_dictionary(source: Path, target: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for word, translation in zip(read_lines(source), read_lines(target), strict=True):
        found.setdefault(word.lower(), set()).add(translation.lower().strip(" ."))
    return found


def measure_words(arguments: argparse.Namespace, translate: Translate) -> None:
    words = content_words(arguments.text, arguments.count)
    dictionary = read_dictionary(*arguments.dictionary)
    known = {
        word.lower()
        for line in islice(read_lines(arguments.known), 1_000_000)
        for word in re.findall(r"[^\W\d_]+", line)
    }
    made = translate(words)
    right, empty, loops, invented, others = 0, 0, 0, 0, []
    for word, text in zip(words, made, strict=True):
        plain = text.lower().strip(" .!")
        empty += not has_words(text)
        loops += is_loop(text, word) or len(plain.split()) > 4
        is_invented = any(part not in known for part in re.findall(r"[^\W\d_]+", plain))
        invented += is_invented
        if plain in dictionary.get(word, set()):
            right += 1
        else:
            others.append(f"{word} → {text}{'  (invented)' if is_invented else ''}")
    print(
        f"{len(words)} words: {right} as the dictionary has them, {len(others)} otherwise; "
        f"{empty} empty, {loops} repeated or longer than 4 words, {invented} with an unknown word"
    )
    sample = random.Random(1).sample(others, min(arguments.show, len(others)))  # noqa: S311
    print(*sample, sep="\n")


def sentences(text: Path, accept: Callable[[str], bool], count: int) -> list[str]:
    return list(islice((line for line in read_lines(text) if accept(line)), count))


def measure_numbers(arguments: argparse.Namespace, translate: Translate) -> None:
    texts = sentences(arguments.text, lambda line: bool(re.search(r"\d", line)), arguments.count)
    made = translate(texts)
    numbers = Numbers(spelling_of("en"), spelling_of("pt"))
    wrong = [
        f"{source}\n    {target}"
        for source, target in zip(texts, made, strict=True)
        if numbers.differ(source, target)
    ]
    print(f"{len(texts)} sentences with numbers: {1 - len(wrong) / len(texts):.2%} have the same")
    print(*wrong[: arguments.show], sep="\n")


def with_placeholders(text: Path, count: int) -> Iterator[str]:
    """Yield sentences with placeholders for names and numbers, or at random places."""
    rng = random.Random(1)  # noqa: S311
    made = 0
    for line in read_lines(text):
        if made == count:
            return
        words = line.split()
        if not 4 <= len(words) <= 30:
            continue
        replaced = replace_shared_spans(Pair(line, line), rng)
        if replaced is not None and made % 2:
            yield replaced.source
        else:
            numbers = rng.sample(range(1, MAX_PLACEHOLDERS + 1), rng.choice((1, 1, 2, 3)))
            for number in numbers:
                words.insert(rng.randrange(len(words)), placeholder(number))
            yield " ".join(words)
        made += 1


def measure_placeholders(arguments: argparse.Namespace, translate: Translate) -> None:
    texts = list(with_placeholders(arguments.text, arguments.count))
    made = translate(texts)
    pattern = re.compile(r"⟨[1-9]⟩")
    wrong = [
        f"{source}\n    {target}"
        for source, target in zip(texts, made, strict=True)
        if sorted(pattern.findall(source)) != sorted(pattern.findall(target))
    ]
    share = 1 - len(wrong) / len(texts)
    print(f"{len(texts)} sentences: in {share:.2%} every placeholder comes back exactly once")
    print(*wrong[: arguments.show], sep="\n")


def measure_case(arguments: argparse.Namespace, translate: Translate) -> None:
    pairs = list(zip(read_lines(arguments.source), read_lines(arguments.reference), strict=True))
    pairs = random.Random(1).sample(pairs, min(arguments.count, len(pairs)))  # noqa: S311
    sources = [source for source, _ in pairs]
    references = [target.lower() for _, target in pairs]
    bare = [target.rstrip(".!?… ") for target in references]
    chrf = sacrebleu.CHRF()
    for name, texts, right in (
        ("as it is", sources, references),
        ("ALL CAPS", [text.upper() for text in sources], references),
        ("Title Case", [" ".join(w[:1].upper() + w[1:] for w in t.split()) for t in sources],
         references),
        ("as it is, without the final mark", sources, bare),
        ("lower case without the final mark", [t.lower().rstrip(".!?… ") for t in sources], bare),
    ):  # fmt: skip
        made = [text.lower() for text in translate(texts)]
        if right is bare:
            made = [text.rstrip(".!?… ") for text in made]
        print(f"{name:34} chrF {chrf.corpus_score(made, [right]).score:.1f}", flush=True)
        for text, translation in list(zip(texts, made, strict=True))[: arguments.show]:
            print(f"    {text}\n        {translation}")


def show_inputs(arguments: argparse.Namespace, translate: Translate) -> None:
    texts = list(read_lines(arguments.text))
    for text, translation in zip(texts, translate(texts), strict=True):
        print(f"| {text} | {translation} |")


MEASURES: dict[str, tuple[Callable[[argparse.Namespace, Translate], None], int, Sequence[str]]] = {
    "words": (measure_words, 1000, ("text", "dictionary", "known")),
    "numbers": (measure_numbers, 1000, ("text",)),
    "placeholders": (measure_placeholders, 2000, ("text",)),
    "case": (measure_case, 500, ("source", "reference")),
    "inputs": (show_inputs, 0, ("text",)),
}
"""Measures by name: the function, words or sentences that it tries, and files that it needs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help="directory of the bundle, English to Portuguese")
    parser.add_argument("measure", choices=MEASURES, help="what is measured")
    parser.add_argument(
        "--text",
        type=Path,
        help="English text, a sentence a line; for words, numbers, placeholders and inputs",
    )
    parser.add_argument(
        "--dictionary",
        type=Path,
        nargs=2,
        metavar=("EN", "PT"),
        help="words and their translations, line by line; for words",
    )
    parser.add_argument(
        "--known",
        type=Path,
        help="Portuguese text; a word that is not in it counts as invented; for words",
    )
    parser.add_argument(
        "--source", type=Path, help="source text of the test, a sentence a line; for case"
    )
    parser.add_argument(
        "--reference", type=Path, help="reference translation of that text; for case"
    )
    parser.add_argument(
        "--beam", type=int, default=4, help="beam size of the search (default: %(default)s)"
    )
    parser.add_argument(
        "--count",
        type=int,
        help="number of words or sentences to try (default: 1000 words or numbers, 2000 "
        "placeholders, 500 for case)",
    )
    parser.add_argument(
        "--show", type=int, default=10, help="number of cases to print (default: %(default)s)"
    )
    parser.add_argument(
        "--raw", action="store_true", help="measure translations that the server has not mended"
    )
    arguments = parser.parse_args()
    measure, count, needed = MEASURES[arguments.measure]
    if missing := [f"--{name}" for name in needed if getattr(arguments, name) is None]:
        parser.error(f"{arguments.measure} needs {' and '.join(missing)}")
    arguments.count = arguments.count or count
    options = Options(beam_size=arguments.beam, mend=not arguments.raw)
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "server.log"
        with dragoman_server(arguments.bundle, log) as server, Caller(server.address) as caller:

            def translate(texts: Sequence[str]) -> list[str]:
                return [made.text for made in caller.translate(texts, 32, options)]

            measure(arguments, translate)


if __name__ == "__main__":
    main()
