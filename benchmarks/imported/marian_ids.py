"""Check that an imported Marian model gives what Marian's formulas give, on real text.

    python benchmarks/imported/marian_ids.py DIR BUNDLE... --source test.en.gz [--sentences 200]

DIR is the directory of the model, each BUNDLE what ``dragoman import-marian`` made of it. Sentences
are translated greedily, each alone and all in company: ids and scores must be the same to the last
bit, in any precision. The ids of a float32 bundle must also be those of the forward pass in plain
numpy, with the file's weights as floats; sentences that differ are printed. Ends with exit code 1
where something differs.
"""

import argparse
import time
from itertools import islice
from pathlib import Path

from dragoman_export.marian.directory import ModelDirectory
from dragoman_export.marian.model_file import CONFIG
from dragoman_export.marian.reading import read_model
from dragoman_export.marian.reference import MarianReference
from dragoman_export.marian.yaml_text import read_table
from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.engine.core import Answer, Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.text.vocabulary_file import load_vocabularies
from dragoman_training.data.text.corpus import read_lines

ROWS = 32
"""Sentences that are decoded at once in company."""


def reference_of(directory: Path, bundle: Bundle) -> MarianReference:
    """Return the model of a directory in plain numpy."""
    files = ModelDirectory(directory)
    with files.unpacked(files.model) as path:
        model = read_model(path)
    special = bundle.manifest.special_ids
    return MarianReference(
        {name: weight.values for name, weight in model.weights.items()},
        read_table(model.config, CONFIG),
        end=special.end,
        unknown=special.unknown,
    )


def translated(bundle: Bundle, sources: list[tuple[int, ...]], limits: list[int]) -> list[Answer]:
    """Translate all sentences in company, and check that each alone gives the same bits."""
    with Translator(bundle, EngineSettings(rows=ROWS, lanes=1)) as translator:
        asked = [
            ([Sentence(source)], Options(max_tokens=limit))
            for source, limit in zip(sources, limits, strict=True)
        ]
        pending = [translator.submit(*each) for each in asked]
        together = [each.result()[0] for each in pending]
        alone = [translator.translate(*each)[0] for each in asked]
    different = sum(
        one.hypotheses[0].ids != other.hypotheses[0].ids
        or one.hypotheses[0].token_log_probs != other.hypotheses[0].token_log_probs
        for one, other in zip(together, alone, strict=True)
    )
    name = f"{bundle.path} ({bundle.manifest.precision})"
    print(f"{name}: {different} of {len(sources)} differ alone and in company", flush=True)
    if different:
        raise SystemExit(1)
    return together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="directory of the Marian model")
    parser.add_argument("bundles", type=Path, nargs="+", help="bundles that were imported from it")
    parser.add_argument(
        "--source", type=Path, required=True, help="source text, a sentence a line; may be gzip"
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=200,
        help="sentences of the text that are translated (default: %(default)s)",
    )
    arguments = parser.parse_args()
    lines = (line for line in read_lines(arguments.source) if line.strip())
    texts = list(islice(lines, arguments.sentences))
    for path in arguments.bundles:
        bundle = read_bundle(path)
        vocabulary, target = load_vocabularies(bundle)
        sources = [vocabulary.encode(text) for text in texts]
        limits = [min(2 * len(ids) + 10, bundle.manifest.max_target_tokens) for ids in sources]
        answers = translated(bundle, sources, limits)
        if bundle.manifest.precision != "float32":
            continue
        start = time.perf_counter()
        reference = reference_of(arguments.directory, bundle)
        wrong = 0
        for text, source, limit, answer in zip(texts, sources, limits, answers, strict=True):
            expected = reference.translate(source, limit)
            found = [t for t in answer.hypotheses[0].ids if t != bundle.manifest.special_ids.end]
            if found != expected:
                wrong += 1
                print(f"differs: {text}\n  ours  {target.decode(found)}")
                print(f"  numpy {target.decode(expected)}")
        seconds = time.perf_counter() - start
        print(
            f"{len(texts) - wrong} of {len(texts)} have numpy's ids ({seconds:.0f} s)", flush=True
        )
        if wrong:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
