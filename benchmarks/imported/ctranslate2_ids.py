"""Check that an imported Argos package gives the ids that CTranslate2 gives, on real text.

    python benchmarks/imported/ctranslate2_ids.py PACKAGE BUNDLE --source test.zh [--sentences 200]

PACKAGE is a file of Argos Translate, or its directory, and BUNDLE what ``dragoman import-argos``
made of it, in float32. Sentences are cut into pieces by the package's SentencePiece model for
CTranslate2, and by the bundle's vocabulary for the engine; then both translate greedily,
CTranslate2 one sentence at a time and with ``compute_type="float32"``. Sentences that differ are
printed with their scores, and with the least lead that a chosen token had over the second: a lead
of up to 1e-4 is a tie, where rounding decides. Ends with exit code 1 where a difference is no tie.
"""

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import ctranslate2
from sentencepiece import SentencePieceProcessor

from dragoman_export.argos.importer import MODEL
from dragoman_export.argos.package import MAX_MODEL_BYTES, open_package
from dragoman_export.argos.vocabularies import CONFIG, SENTENCEPIECE
from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.engine.core import Hypothesis, Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_server.runtime.scoring import default_limit
from dragoman_server.text.vocabulary_file import load_vocabularies
from dragoman_training.data.text.corpus import read_lines

TIE = 1e-4
"""Lead of a token over the second up to which rounding decides."""
VOCABULARIES = [
    f"model/{which}_vocabulary.{kind}"
    for which in ("shared", "source", "target")
    for kind in ("json", "txt")
]


def unpack(package: Path, directory: Path) -> bytes:
    """Write the CTranslate2 model of a package to a directory, and return its tokenizer."""
    with open_package(package) as held:
        for name in (MODEL, CONFIG, *VOCABULARIES):
            if held.has(name):
                size = held.checked_size(name, MAX_MODEL_BYTES)
                with held.stream(name) as stream:
                    (directory / Path(name).name).write_bytes(stream.read(size))
        return held.content(SENTENCEPIECE)


def by_ctranslate2(
    package: Path, texts: Sequence[str], limits: Sequence[int]
) -> list[tuple[list[str], list[str], float]]:
    """Return the pieces of each text, those of its translation, and its log-probability."""
    with TemporaryDirectory() as directory:
        tokenizer = SentencePieceProcessor(model_proto=unpack(package, Path(directory)))
        translator = ctranslate2.Translator(
            directory, device="cpu", compute_type="float32", inter_threads=1, intra_threads=1
        )
        found = []
        for text, limit in zip(texts, limits, strict=True):
            pieces = tokenizer.encode(text, out_type=str)
            (result,) = translator.translate_batch(
                [pieces],
                beam_size=1,
                min_decoding_length=0,
                max_decoding_length=limit - 1,  # ours counts the end
                max_input_length=0,
                length_penalty=0,
                return_scores=True,
            )
            found.append((pieces, result.hypotheses[0], result.scores[0]))
    return found


def by_engine(
    bundle: Bundle, sources: Sequence[Sequence[int]], limits: Sequence[int]
) -> list[Hypothesis]:
    """Translate with the engine."""
    with Translator(bundle, EngineSettings(rows=16, lanes=1, threads=1)) as translator:
        pending = [
            translator.submit([Sentence(tuple(source))], Options(max_tokens=limit))
            for source, limit in zip(sources, limits, strict=True)
        ]
        return [each.result()[0].hypotheses[0] for each in pending]


def leads(bundle: Bundle, sources: Sequence[Sequence[int]], limits: Sequence[int]) -> list[float]:
    """Return the least lead that a chosen token of each translation has over the second."""
    graphs = Graphs(bundle, GraphSettings(rows=16))
    found: list[float] = []
    for at in range(0, len(sources), 16):
        found += [d.margin for d in greedy(graphs, sources[at : at + 16], limits[at : at + 16])]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, help="Argos package, or its directory")
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
    arguments = parser.parse_args()
    bundle = read_bundle(arguments.bundle)
    source, target = load_vocabularies(bundle)
    lines = (line for line in read_lines(arguments.source) if line.strip())
    texts = list(islice(lines, arguments.sentences))
    sources = source.encode_all(texts)
    limits = [default_limit(len(ids), bundle.manifest.max_target_tokens) for ids in sources]
    theirs = by_ctranslate2(arguments.package, texts, limits)
    ours = by_engine(bundle, sources, limits)
    least = leads(bundle, sources, limits)
    ties = wrong = tokens = 0
    worst = 0.0
    for text, ids, own, (read, written, score), lead in zip(
        texts, sources, ours, theirs, least, strict=True
    ):
        tokens += len(written)
        found = [source.find(piece) for piece in read]
        if [source.unknown if token is None else token for token in found] != list(ids):
            wrong += 1
            print(f"other tokens: {text}: {ids}, CTranslate2 is given {read}")
        elif [target.piece(token) for token in own.ids] == written:
            worst = max(worst, abs(own.log_prob - score))
        else:
            is_tie = lead <= TIE
            ties, wrong = ties + is_tie, wrong + (not is_tie)
            print(f"{'a tie' if is_tie else 'differs'}, least lead {lead:.1e}: {text}")
            print(f"  ours        {own.log_prob:.6f} {target.decode(own.ids)}")
            print(f"  CTranslate2 {score:.6f} {''.join(written)}")
    print(
        f"{len(texts) - ties - wrong} of {len(texts)} equal ({tokens} tokens), {ties} ties, "
        f"{wrong} differ; log-probabilities of equal ones within {worst:.1e}; least lead of a "
        f"token {min(least):.1e}"
    )
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
