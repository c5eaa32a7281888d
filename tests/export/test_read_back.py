"""Bundles read back into checkpoints, and runs that begin with one."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman_cli.extras import how_to_install
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.graphs.precision import quantize_rows
from dragoman_export.read_back import checkpoint_of_bundle
from dragoman_export.source import origin_of
from dragoman_export.texts import ParallelSample
from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.data.text.corpus import read_lines
from dragoman_training.errors import CheckpointError, RecipeError
from dragoman_training.models.transformer import Transformer
from dragoman_training.report.records import Observer, ValidationRecord
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.train.run import train
from dragoman_training.translate.evaluation import translate
from support import MODEL
from support.bundles import SAMPLE, export, ignore, seeded_model
from support.checkpoints import checkpoint_of
from support.command import dragoman

ARCHITECTURES: list[dict[str, Any]] = [
    {"norm": "post", "activation": "relu", "tied_embeddings": "all"},
    {"norm": "pre", "activation": "swish", "tied_embeddings": "target"},
    {"norm": "pre", "positions": "learned", "output_bias": True, "scale_embeddings": False},
]


def bundle_of(model: Transformer, path: Path, precision: str, **more: Any) -> Path:
    checkpoint = checkpoint_of(model)
    recipe = {"model": asdict(model.settings), "data": {}}
    checkpoint = replace(checkpoint, config={**checkpoint.config, "recipe": recipe})
    settings = ExportSettings(name="x", precision=precision, licence="Apache-2.0", **more)
    export_bundle(origin_of(checkpoint), path, settings, SAMPLE, ignore)
    return path


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=("post", "pre", "learned"))
def test_float32_weights_come_back_to_the_bit(tmp_path: Path, architecture: dict[str, Any]) -> None:
    model = seeded_model(**architecture)
    found = checkpoint_of_bundle(bundle_of(model, tmp_path / "bundle", "float32"))
    expected = checkpoint_of(model)
    assert found.weights.keys() == expected.weights.keys()
    for name, tensor in expected.weights.items():
        assert torch.equal(found.weights[name], tensor), name
    assert found.tokenizers.files() == expected.tokenizers.files()
    assert found.build_model().settings == model.settings


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=("post", "pre", "learned"))
def test_int8_weights_come_back_up_to_their_rounding(
    tmp_path: Path, architecture: dict[str, Any]
) -> None:
    model = seeded_model(**architecture)
    keep = ("decoder.0.feed_forward.*",)
    path = bundle_of(model, tmp_path / "bundle", "int8", keep_float32=keep)
    found = checkpoint_of_bundle(path).weights
    for name, tensor in checkpoint_of(model).weights.items():
        is_matrix = tensor.ndim == 2 and "positions" not in name
        if is_matrix and "decoder.0.feed_forward" not in name:
            _, steps = quantize_rows(tensor.numpy())
            error = np.abs(found[name].numpy() - tensor.numpy())
            assert (error <= 0.501 * steps[:, None]).all(), name
            assert error.max() > 0, name
        else:
            assert torch.equal(found[name], tensor), name


def test_the_default_model_comes_back_and_translates() -> None:
    checkpoint = checkpoint_of_bundle(MODEL)
    model = checkpoint.build_model().eval()
    found = translate(model, checkpoint.tokenizers, ["Good morning.", "Thank you."])
    assert [each.text for each in found] == ["Bom dia.", "Obrigado."]


def recipe_of(text: tuple[Path, Path], **training: Any) -> Recipe:
    source, target = ([str(path)] for path in text)
    return recipe_from_dict(
        {
            "data": {
                "source_language": "en",
                "target_language": "pt",
                "train_source": source,
                "train_target": target,
                "valid_source": source,
                "valid_target": target,
                "max_tokens": 32,
            },
            "tokenizer": {"vocabulary": 320},
            "model": {"preset": "tiny", "width": 32, "dropout": 0.0, "max_length": 32},
            "training": {"batch_tokens": 1024, "warmup_steps": 20, **training},
            "validation": {"every": 1000, "sentences": 0, "metric": "loss"},
        }
    )


class _Validations(Observer):
    last: ValidationRecord

    def validated(self, record: ValidationRecord) -> None:
        self.last = record


@pytest.fixture
def bundle(parallel_text: tuple[Path, Path], tmp_path: Path) -> Path:
    """An int8 bundle of a run that has learnt something, and is lost itself."""
    recipe = recipe_of(parallel_text, max_steps=120, learning_rate=0.01)
    final = Checkpoint.load(train(recipe, tmp_path / "lost", Observer()))
    settings = ExportSettings(name="x", precision="int8", licence="Apache-2.0")
    source, target = (list(read_lines(path))[:40] for path in parallel_text)
    sample = ParallelSample(source, target)
    export_bundle(origin_of(final), tmp_path / "bundle", settings, sample, ignore)
    return tmp_path / "bundle"


def test_a_run_begins_where_the_exported_model_was(
    bundle: Path, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    lost = Checkpoint.load(tmp_path / "lost" / "final").config["quality"]["loss"]
    still = {"max_steps": 1, "learning_rate": 1e-9}  # so that the first validation is of the start
    begun, fresh = _Validations(), _Validations()
    recipe = recipe_of(parallel_text, initial=str(bundle), **still)
    final = train(recipe, tmp_path / "begun", begun)
    train(recipe_of(parallel_text, **still), tmp_path / "fresh", fresh)
    assert lost < fresh.last.loss - 1
    assert begun.last.loss == pytest.approx(lost, abs=0.05)
    config = Checkpoint.load(final).config
    assert config["data"]["initial"]["progress"]["step"] == 120
    # And it goes on learning, without the bundle.
    (bundle / "manifest.json").unlink()
    train(replace(recipe, training=replace(recipe.training, max_steps=2)), final.parent, begun)


def test_another_architecture_is_refused_and_named(
    bundle: Path, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe = recipe_of(parallel_text, initial=str(bundle), max_steps=1)
    wider = replace(recipe, model=replace(recipe.model, width=64))
    with pytest.raises(RecipeError, match=r"model\.width is 64: .*bundle, which .* has 32"):
        train(wider, tmp_path / "run", Observer())


def test_a_bundle_that_does_not_say_how_it_was_trained_is_refused(tmp_path: Path) -> None:
    export(seeded_model(), tmp_path / "bundle", "float32")
    manifest = tmp_path / "bundle" / "manifest.json"
    told = json.loads(manifest.read_text())
    assert told["provenance"].pop("model")  # which earlier versions did not write
    manifest.write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match="does not say how its model was trained"):
        checkpoint_of_bundle(tmp_path / "bundle")


def test_a_damaged_bundle_is_refused(tmp_path: Path) -> None:
    path = bundle_of(seeded_model(), tmp_path / "bundle", "float32")
    weights = path / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"weights\.bin: \d+ bytes, but the manifest says"):
        checkpoint_of_bundle(path)


def test_without_what_reads_a_bundle_there_is_one_line(
    tmp_path: Path, parallel_text: tuple[Path, Path]
) -> None:
    """Training alone does not install it."""
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "onnx.py").write_text("raise ModuleNotFoundError(\"No module named 'onnx'\")\n")
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "manifest.json").write_text("{}")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        '[data]\nsource_language = "en"\ntarget_language = "pt"\n'
        f"train_source = {json.dumps(str(parallel_text[0]))}\n"
        f"train_target = {json.dumps(str(parallel_text[1]))}\n"
    )
    setting = f"training.initial={bundle}"
    code, _, stderr = dragoman(
        *("train", recipe, "--output", tmp_path / "run", "--set", setting),
        env={**os.environ, "PYTHONPATH": str(absent)},
    )
    assert code == 2
    assert stderr.splitlines()[-1] == (
        f"dragoman: {recipe}: training.initial is {bundle}, a bundle: to read it, "
        f"{how_to_install('export')} (No module named 'onnx')"
    )
    assert not (tmp_path / "run").exists()
