"""Imported models give what Marian's forward pass, in plain numpy, gives."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
import yaml

from dragoman_export.bundle_files import write_unverified
from dragoman_export.errors import VerificationError
from dragoman_export.marian.importer import ImportSettings, read_origin
from dragoman_export.marian.proof import check_against_reference
from dragoman_export.marian.reference import MarianReference
from dragoman_export.source import Origin
from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_training.data.batch import pad_sources
from support.marian_models import END, UNKNOWN, MarianModel, sources

LIMIT = 20
ROUNDING = 2e-3
"""Of log-probabilities, at most: attention that is this sharp makes it larger."""
KINDS = {
    "Firefox's": MarianModel(is_quantized=True),
    "SSRU, two vocabularies": MarianModel(vocabularies=(120, 90), tied="target", seed=2),
    "SSRU, norms before": MarianModel(norm="pre", activation="swish", form="npz", seed=3),
    "self-attention": MarianModel(decoder="self-attention", activation="swish", form="npz", seed=4),
    "self-attention, 8 bits, nothing tied": MarianModel(
        decoder="self-attention", is_quantized=True, tied="none", vocabularies=(90, 120), seed=5
    ),
    "self-attention, norms before": MarianModel(
        decoder="self-attention", norm="pre", tied="sides", seed=6
    ),
}
_DIRECTORY = TemporaryDirectory()


@cache
def imported(kind: str) -> tuple[Origin, UncheckedBundle]:
    path = Path(_DIRECTORY.name) / kind
    origin = read_origin(KINDS[kind].write(path / "marian"), ImportSettings(max_length=LIMIT + 4))
    (path / "bundle").mkdir()
    facts = {"special_ids": origin.special}
    bundle = write_unverified(
        origin.model, path / "bundle", "float32", ends=origin.ends, facts=facts
    )
    return origin, bundle


def reference(kind: str) -> MarianReference:
    config = {key: str(value) for key, value in yaml.safe_load(KINDS[kind].yaml()).items()}
    return MarianReference(KINDS[kind].weights(), config, end=END, unknown=UNKNOWN)


@pytest.mark.parametrize("kind", KINDS)
def test_the_graphs_give_the_references_ids(kind: str) -> None:
    lines = sources(40, seed=9, vocabulary=KINDS[kind].sizes[0])
    expected = [reference(kind).translate(line, LIMIT) for line in lines]
    _, bundle = imported(kind)
    graphs = Graphs(bundle, GraphSettings(rows=len(lines)))
    found = greedy(graphs, lines, [LIMIT] * len(lines))
    assert [[t for t in each.ids if t != END] for each in found] == expected
    assert len({tuple(line) for line in expected}) > 20
    assert len({token for line in expected for token in line}) > 20
    assert not any(UNKNOWN in line for line in expected)


@pytest.mark.parametrize("kind", ["Firefox's", "SSRU, norms before"])
def test_the_engine_gives_them_too_in_any_company(kind: str) -> None:
    lines = sources(12, seed=10, vocabulary=KINDS[kind].sizes[0])
    expected = [reference(kind).translate(line, LIMIT) for line in lines]
    _, bundle = imported(kind)
    with Translator(bundle, EngineSettings(rows=5, lanes=1)) as translator:
        some = [Sentence(tuple(line)) for line in lines]
        answers = translator.translate(some, Options(max_tokens=LIMIT))
    found = [[t for t in answer.hypotheses[0].ids if t != END] for answer in answers]
    assert found == expected


def test_a_model_that_computes_something_else_is_noticed() -> None:
    origin, _ = imported("SSRU, two vocabularies")
    check_against_reference(origin.model, reference("SSRU, two vocabularies"), end=END)
    for name in ("encoder.1.attention.output.weight", "decoder.0.ssru.forget.bias"):
        changed = deepcopy(origin.model)
        with torch.no_grad():
            changed.get_parameter(name).mul_(1.1)
        with pytest.raises(VerificationError, match="differ from those of Marian's formulas by"):
            check_against_reference(changed, reference("SSRU, two vocabularies"), end=END)


def test_weights_that_overflow_are_refused_in_a_line(tmp_path: Path) -> None:
    kind = MarianModel(form="npz", scale=1e30)
    with pytest.raises(VerificationError, match="differ from"):
        read_origin(kind.write(tmp_path), ImportSettings())


@pytest.mark.parametrize("kind", KINDS)
def test_pytorch_gives_the_references_probabilities(kind: str) -> None:
    """Of given targets, and so at places where search would not go."""
    origin, _ = imported(kind)
    source_vocabulary, target_vocabulary = KINDS[kind].sizes
    source = sources(1, seed=11, vocabulary=source_vocabulary)
    (target,) = sources(1, seed=12, vocabulary=target_vocabulary)
    expected = reference(kind).log_probs(source[0], target)
    with torch.inference_mode():
        ids = pad_sources(source, torch.device("cpu"), END)
        logits = origin.model(*ids, torch.tensor([[END, *target]]))[0]
    found = logits.log_softmax(-1).numpy()
    assert np.isneginf(found[:, UNKNOWN]).all()
    others = np.arange(target_vocabulary) != UNKNOWN
    np.testing.assert_allclose(found[:, others], expected[:, others], rtol=0, atol=ROUNDING)
