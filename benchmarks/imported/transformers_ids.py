"""Check that an imported model gives the ids that transformers' ``generate`` gives, on real text.

    python benchmarks/imported/transformers_ids.py DIR BUNDLE --source test.en.gz [--sentences 200]

DIR is the Hugging Face directory of a MarianMT, BUNDLE what ``dragoman import-hf`` made of it.
First the tokens of all lines are compared with those of MarianTokenizer. Then sentences are
translated greedily and with a beam of 4, with transformers and with the engine. Sentences that
differ are printed, with the scores of both. A difference of scores up to 1e-4 is a tie: which of
two hypotheses wins it is a matter of rounding. Ends with exit code 1 where one is no tie.

``generate`` is told what ``docs/bridges.md`` says: not to stop a beam before the best is certain.
"""

import argparse
import logging
import warnings
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from transformers import MarianMTModel, MarianTokenizer

from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.text.vocabulary_file import load_vocabularies
from dragoman_training.data.text.corpus import read_lines

TIE = 1e-4
"""Difference of two scores up to which hypotheses are a tie."""
BATCH = 8
"""Sentences that transformers translates at once."""


@dataclass(frozen=True)
class Found:
    """A translation."""

    ids: tuple[int, ...]
    """Its tokens, without begin and end."""
    score: float
    """Its log-probability, divided by its length with the end token."""


def by_generate(
    model: Any, sources: list[list[int]], limits: list[int], size: int, early_stopping: Any
) -> list[Found]:
    """Translate with transformers, sentences of like length together."""
    config = model.generation_config
    is_raw = size == 1 and not config.renormalize_logits
    order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    found: dict[int, Found] = {}
    for at in range(0, len(order), BATCH):
        numbers = order[at : at + BATCH]
        lines = [[*sources[n], config.eos_token_id] for n in numbers]
        ids = torch.full((len(lines), max(map(len, lines))), config.pad_token_id)
        for line, source in zip(ids, lines, strict=True):
            line[: len(source)] = torch.tensor(source)
        mask = torch.zeros_like(ids)
        for line, source in zip(mask, lines, strict=True):
            line[: len(source)] = 1
        out = model.generate(
            input_ids=ids,
            attention_mask=mask,
            num_beams=size,
            do_sample=False,
            max_new_tokens=max(limits[n] for n in numbers),
            return_dict_in_generate=True,
            output_scores=True,
            **({"early_stopping": early_stopping} if size > 1 else {}),
        )
        steps = model.compute_transition_scores(
            out.sequences,
            out.scores,
            getattr(out, "beam_indices", None),
            normalize_logits=is_raw,
        )
        for number, line, scores in zip(numbers, out.sequences[:, 1:].tolist(), steps, strict=True):
            length = line.index(config.eos_token_id) + 1
            found[number] = Found(tuple(line[: length - 1]), float(scores[:length].sum()) / length)
    return [found[number] for number in range(len(sources))]


def by_engine(
    bundle: Bundle, sources: list[list[int]], limits: list[int], size: int
) -> list[Found]:
    """Translate with the engine."""
    with Translator(bundle, EngineSettings(rows=32)) as translator:
        pending = [
            translator.submit([Sentence(tuple(source))], Options(beam=size, max_tokens=limit))
            for source, limit in zip(sources, limits, strict=True)
        ]
        best = [each.result()[0].hypotheses[0] for each in pending]
    return [Found(each.ids, each.score) for each in best]


def compare(name: str, texts: list[str], ours: list[Found], theirs: list[Found], show: Any) -> int:
    """Print what differs, and return how many translations do and are no tie."""
    ties = wrong = 0
    worst = 0.0
    for text, own, other in zip(texts, ours, theirs, strict=True):
        difference = abs(own.score - other.score)
        if own.ids == other.ids:
            worst = max(worst, difference)
            continue
        is_tie = difference <= TIE
        ties, wrong = ties + is_tie, wrong + (not is_tie)
        print(f"{name}, {'a tie' if is_tie else 'differs'}: {text}")
        print(f"  ours         {own.score:.6f} {show(own.ids)}")
        print(f"  transformers {other.score:.6f} {show(other.ids)}")
    equal = len(ours) - ties - wrong
    print(
        f"{name}: {equal} of {len(ours)} equal, {ties} ties, {wrong} differ; scores of equal ones "
        f"within {worst:.1e}",
        flush=True,
    )
    return wrong


def compare_tokens(directory: Path, bundle: Bundle, texts: list[str]) -> int:
    """Compare the tokens of texts with MarianTokenizer's, and return how many texts differ."""
    tokenizer = MarianTokenizer.from_pretrained(directory)
    ours, _ = load_vocabularies(bundle)
    wrong = 0
    for text in texts:
        expected = tokenizer(text)["input_ids"][:-1]
        found = list(ours.encode_all([text])[0])
        if found != expected:
            wrong += 1
            print(f"other tokens: {text!r}: {found}, MarianTokenizer {expected}")
    print(f"tokens: {len(texts) - wrong} of {len(texts)} lines equal", flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="Hugging Face directory of the model")
    parser.add_argument("bundle", type=Path, help="float32 bundle that was imported from it")
    parser.add_argument(
        "--source", type=Path, required=True, help="source text, a sentence a line; may be gzip"
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=200,
        help="sentences of the text that are translated (default: %(default)s)",
    )
    parser.add_argument(
        "--early-stopping",
        choices=["never", "false", "true"],
        default="never",
        help="how generate stops a beam; transformers' own default is false (default: %(default)s)",
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    bundle = read_bundle(arguments.bundle)
    lines = list(read_lines(arguments.source))
    wrong = compare_tokens(arguments.directory, bundle, lines)
    source, target = load_vocabularies(bundle)
    texts = list(islice((line for line in lines if line.strip()), arguments.sentences))
    sources = [list(ids) for ids in source.encode_all(texts)]
    limits = [min(2 * len(ids) + 10, bundle.manifest.max_target_tokens - 1) for ids in sources]
    model: Any = MarianMTModel.from_pretrained(arguments.directory)
    model.eval()
    stopping = {"never": "never", "false": False, "true": True}[arguments.early_stopping]
    for size in (1, 4):
        name = f"beam {size}" if size > 1 else "greedy"
        theirs = by_generate(model, sources, limits, size, stopping)
        ours = by_engine(bundle, sources, limits, size)
        wrong += compare(name, texts, ours, theirs, target.decode)
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
