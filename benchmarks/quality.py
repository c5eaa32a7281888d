"""Measure how good a bundle's translations are: the figures of a model card, from the engine.

    python benchmarks/quality.py models/en-pt --source test.en.gz --reference test.pt.gz

Prints BLEU and chrF of greedy and of beam search, for the whole text, for its longest sentences,
and for the text joined into groups of sentences, since users paste more than one at a time. With
--worst it also prints the sentences with the lowest chrF among the first few hundred, and with
--translate the translations of a text of your own.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import sacrebleu

from dragoman_export.distil import Teacher
from dragoman_server.engine.core import Options
from dragoman_training.data.text.corpus import read_lines
from dragoman_training.translate.evaluation import measure


def translate(teacher: Teacher, texts: Sequence[str], beam: int) -> list[str]:
    """Return the translations; that of a text that is too long for the model is empty."""
    found: list[str] = []
    for at in range(0, len(texts), 2048):
        work = teacher.submit(texts[at : at + 2048], Options(beam=beam))
        found += [best[0] if best else "" for best in teacher.texts(work)]
    return found


def joined(lines: Sequence[str], size: int) -> list[str]:
    """Return groups of so many lines, each as one text."""
    return [" ".join(lines[at : at + size]) for at in range(0, len(lines), size)]


def longest(sources: Sequence[str], count: int) -> list[int]:
    """Return the numbers of the sentences with most words, in the order of the text."""
    order = sorted(range(len(sources)), key=lambda i: (-len(sources[i].split()), i))
    return sorted(order[:count])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help="directory of the bundle")
    parser.add_argument(
        "--source",
        type=Path,
        required=True,
        help="source text of the test, a sentence a line; may be gzip",
    )
    parser.add_argument(
        "--reference",
        type=Path,
        required=True,
        help="reference translation of that text, a sentence a line; may be gzip",
    )
    parser.add_argument(
        "--source-language",
        default="",
        help="source language, such as en, if the bundle has several",
    )
    parser.add_argument(
        "--target-language",
        default="",
        help="target language, such as pt, if the bundle has several",
    )
    parser.add_argument(
        "--beams",
        type=int,
        nargs="+",
        default=[1, 4],
        help="beam sizes; 1 is greedy search (default: %(default)s)",
    )
    parser.add_argument(
        "--longest",
        type=int,
        default=500,
        help="number of longest sentences that are also measured apart (default: %(default)s)",
    )
    parser.add_argument(
        "--join",
        type=int,
        default=3,
        help="sentences that are joined to one text, also measured apart (default: %(default)s)",
    )
    parser.add_argument(
        "--worst",
        type=int,
        default=0,
        help="number of worst translations, by chrF, to print (default: %(default)s)",
    )
    parser.add_argument(
        "--worst-of",
        type=int,
        default=200,
        help="first sentences among which the worst are looked for (default: %(default)s)",
    )
    parser.add_argument(
        "--translate", type=Path, help="text of your own whose translations are printed"
    )
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    sources, references = (
        list(read_lines(path)) for path in (arguments.source, arguments.reference)
    )
    chosen = longest(sources, arguments.longest)
    sets = {
        "all": (sources, references),
        f"{len(chosen)} longest": (
            [sources[i] for i in chosen],
            [references[i] for i in chosen],
        ),
        f"joined by {arguments.join}": (
            joined(sources, arguments.join),
            joined(references, arguments.join),
        ),
    }
    figures: dict[str, dict[str, float]] = {}
    languages = arguments.source_language, arguments.target_language
    with Teacher(arguments.bundle, *languages) as teacher:
        for beam in arguments.beams:
            for name, (texts, right) in sets.items():
                began = time.perf_counter()
                translations = translate(teacher, texts, beam)
                seconds = time.perf_counter() - began
                quality = measure(translations, right, teacher.languages[1])
                row = figures[f"beam {beam}, {name}"] = {
                    "sentences": len(texts),
                    "bleu": round(quality.bleu, 2),
                    "chrf": round(quality.chrf, 2),
                    "not translated": sum(not text for text in translations),
                    "seconds": round(seconds, 1),
                }
                print(f"beam {beam}, {name:12s} ", row, flush=True)
                if name == "all":
                    best = translations
        print(quality.bleu_signature, quality.chrf_signature, sep="\n")
        if arguments.worst:
            few = range(min(arguments.worst_of, len(sources)))
            chrf = sacrebleu.CHRF()
            scores = {i: chrf.sentence_score(best[i], [references[i]]).score for i in few}
            for i in sorted(few, key=scores.__getitem__)[: arguments.worst]:
                print(f"\n{scores[i]:5.1f}  {sources[i]}\n       {best[i]}\n       {references[i]}")
        if arguments.translate:
            texts = list(read_lines(arguments.translate))
            translations = translate(teacher, texts, max(arguments.beams))
            for source, translation in zip(texts, translations, strict=True):
                print(f"\n{source}\n{translation}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
