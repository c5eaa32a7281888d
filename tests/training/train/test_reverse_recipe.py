"""The toy recipe, as the README has it: train, measure, and look at the pictures' data."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from dragoman_training.errors import CorpusError
from dragoman_training.report.logs import read_metrics
from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint
from dragoman_training.translate.alignment import cross_attention
from support import ROOT
from support.command import dragoman

pytestmark = pytest.mark.slow  # a whole training

RECIPE = ROOT / "recipes" / "reverse.toml"


def stdout_of(*arguments: str | Path) -> str:
    run = dragoman(*arguments)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "reverse"
    stdout_of("train", RECIPE, "--output", run)
    return run


def test_reaches_99_percent_exact(run: Path) -> None:
    toy = run / "data" / "toy"
    files = ("--source", toy / "test.source", "--reference", toy / "test.target")
    for beam in ("1", "4"):
        figures = json.loads(stdout_of("evaluate", run, *files, "--beam-size", beam, "--json"))
        assert figures["sentences"] == 1000
        assert figures["exact"] >= 99.0


def test_the_decoder_looks_at_the_letter_that_it_writes(run: Path) -> None:
    checkpoint = Checkpoint.load(find_checkpoint(run))
    model, tokenizers = checkpoint.build_model(), checkpoint.tokenizers
    looked = cross_attention(model, tokenizers, "d r a g o m a n")
    assert looked.translation == "n a m o g a r d"
    assert looked.weights_TS.shape == (len(looked.target), len(looked.source))
    np.testing.assert_allclose(looked.weights_TS.sum(axis=1), 1.0, rtol=1e-5)
    letters = looked.weights_TS[:-1, :-1]
    seen = [looked.source[place] for place in letters.argmax(axis=1)]
    assert sum(s == t for s, t in zip(seen, looked.target, strict=False)) >= 6
    single = cross_attention(model, tokenizers, "d r a g", layer=1, head=2)
    assert not np.allclose(
        single.weights_TS, cross_attention(model, tokenizers, "d r a g").weights_TS
    )
    with pytest.raises(CorpusError, match="--head 9: the model has heads 1 to 4"):
        cross_attention(model, tokenizers, "d r a g", head=9)


def assert_picture(png: Path, least: int) -> None:
    """It has its size and is not blank; its twin is well-formed SVG."""
    with Image.open(png) as image:
        assert min(image.size) > least
        colours = image.convert("RGB").getcolors(1 << 24)
        assert colours is not None
        assert len(colours) > 50
    root = ET.parse(png.with_suffix(".svg")).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_pictures_are_drawn(run: Path, tmp_path: Path) -> None:
    printed = stdout_of("plot", run).splitlines()
    assert printed == [str(run / "curves.png"), str(run / "curves.svg")]
    assert_picture(run / "curves.png", 800)
    heat_map = tmp_path / "new" / "heat.png"
    printed = stdout_of("attention", run, "a b c $ d", "--output", heat_map).splitlines()
    assert printed[1:] == [str(heat_map), str(heat_map.with_suffix(".svg"))]
    assert_picture(heat_map, 300)


def test_everything_is_logged(run: Path) -> None:
    steps, validations = read_metrics(run)
    assert [record.step for record in validations] == [300, 600, 900]
    assert steps[-1].step == 900
    assert steps[-1].loss < steps[0].loss / 20
    assert validations[-1].bleu_signature is not None
    assert any((run / "tensorboard").iterdir())
