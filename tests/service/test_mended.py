"""Mending behind the real server: what a model writes is bad, what clients get is not."""

from collections.abc import Callable, Iterator

import pytest
import torch

from dragoman.v1 import translation_pb2 as pb
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.hf.importer import ImportSettings, read_origin
from dragoman_server.text.faults import is_loop
from dragoman_server.text.segments import has_words
from support.bundles import ignore
from support.hf_models import save_marian, sentences
from support.service_running import Running, few_rows, serving, settings_for

TEXTS = sentences(50, seed=21)
END = 0
IsBad = Callable[[str, str], bool]
LEANINGS = {"loops": -30.0, "empty": 30.0}
"""What is added to the end token's logit: a model that never ends, and one that ends at once."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("mended")
    for name, leaning in LEANINGS.items():
        model, _ = save_marian(path / f"{name}.hf", languages=())
        with torch.no_grad():
            model.final_logits_bias[0, END] += leaning
        model.save_pretrained(path / f"{name}.hf")
        origin = read_origin(path / f"{name}.hf", ImportSettings(max_length=60))
        export_bundle(origin, path / name, ExportSettings(name=name), None, ignore)
    bundles = [path / name for name in LEANINGS]
    with serving(settings_for(*bundles, engine=few_rows(16, max_beam=4))) as server:
        yield server


def loops(source: str, translation: str) -> bool:
    return is_loop(translation, source)


def is_empty(source: str, translation: str) -> bool:
    return has_words(source) and not has_words(translation)


@pytest.mark.parametrize(("model", "is_bad"), [("loops", loops), ("empty", is_empty)])
def test_the_models_are_as_bad_as_they_are_to_be(
    running: Running, model: str, is_bad: IsBad
) -> None:
    raw = running.translate(*TEXTS, model=model, options=pb.Options(mend=False))
    bad = [is_bad(text, found.text) for text, found in zip(TEXTS, raw, strict=True)]
    assert sum(bad) >= 10


@pytest.mark.parametrize("model", LEANINGS)
def test_by_default_no_answer_loops_or_is_empty(running: Running, model: str) -> None:
    for text, found in zip(TEXTS, running.translate(*TEXTS, model=model), strict=True):
        assert not loops(text, found.text), (text, found.text)
        assert not is_empty(text, found.text), (text, found.text)
        for segment in found.segments:
            source = text[segment.source.start : segment.source.end]
            target = found.text[segment.target.start : segment.target.end]
            assert not loops(source, target), (source, target)
            assert not is_empty(source, target), (source, target)


@pytest.mark.parametrize("model", LEANINGS)
def test_nor_does_a_stream(running: Running, model: str) -> None:
    for text in TEXTS[:20]:
        request = pb.TranslateStreamRequest(text=text, model=model)
        *events, last = running.stub.TranslateStream(request)
        shown = "".join(event.delta for event in events)
        assert shown == last.translation.text
        assert not loops(text, shown), (text, shown)
        assert not is_empty(text, shown), (text, shown)
