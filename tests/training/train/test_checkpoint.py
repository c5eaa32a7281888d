"""Checkpoints: whole or not there, and the newest whole one is found."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.errors import CheckpointError
from dragoman_training.files import staged_directory
from dragoman_training.models.transformer import Transformer
from dragoman_training.train.checkpoint import (
    Checkpoint,
    CheckpointStore,
    average,
    find_checkpoint,
    weights_of,
)
from support.models import tiny_model
from support.tokenizers import TRAINED


def checkpoint_of(model: Transformer) -> Checkpoint:
    config = {
        **asdict(model.settings),
        "source_vocabulary": model.source_vocabulary,
        "target_vocabulary": model.target_vocabulary,
    }
    tokenizers = TokenizerPair(TRAINED["bpe"], TRAINED["bpe"])
    moments = {"x.step": torch.tensor(3.0)}
    return Checkpoint({"model": config}, weights_of(model), tokenizers, {"step": 3}, moments)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_files_have_the_mode_that_the_umask_says(tmp_path: Path, umask: int) -> None:
    """safetensors would make files that only their owner may read."""
    before = os.umask(umask)
    try:
        checkpoint_of(tiny_model()).save(tmp_path / "c")
    finally:
        os.umask(before)
    files = list((tmp_path / "c").iterdir())
    assert {"model.safetensors", "optimizer.safetensors", "config.json"} < {f.name for f in files}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o666 & ~umask}


@pytest.mark.parametrize("tied", ["all", "none"])
def test_a_model_comes_back_as_it_was(tmp_path: Path, tied: str) -> None:
    model = tiny_model(tied_embeddings=tied)
    checkpoint_of(model).save(tmp_path / "c")
    loaded = Checkpoint.load(tmp_path / "c")
    again = loaded.build_model()
    assert again.settings == model.settings
    for (name, ours), (other, theirs) in zip(
        model.named_parameters(), again.named_parameters(), strict=True
    ):
        assert name == other
        assert torch.equal(ours, theirs)
    assert loaded.state == {"step": 3}


def test_tied_weights_are_stored_once(tmp_path: Path) -> None:
    model = tiny_model(vocabulary=5000, tied_embeddings="all")
    checkpoint_of(model).save(tmp_path / "c")
    stored = (tmp_path / "c" / "model.safetensors").stat().st_size
    assert stored < 1.05 * 4 * sum(p.numel() for p in model.parameters())


def test_nothing_is_pickled(tmp_path: Path) -> None:
    checkpoint_of(tiny_model()).save(tmp_path / "c")
    endings = {path.suffix for path in (tmp_path / "c").iterdir()}
    assert endings == {".json", ".safetensors", ".spm"}


def test_the_newest_whole_checkpoint_is_found_after_a_cut_at_any_byte(tmp_path: Path) -> None:
    """Every file cut at many places, as a crash of the machine might leave it."""
    store = CheckpointStore(tmp_path)
    checkpoint = checkpoint_of(tiny_model())
    checkpoint.save(store.path(10))
    checkpoint.save(tmp_path / "whole")
    cuts = 0
    for file in sorted((tmp_path / "whole").iterdir()):
        content = file.read_bytes()
        for length in {*range(0, len(content), max(1, len(content) // 7)), len(content) - 1}:
            shutil.copytree(tmp_path / "whole", store.path(20))
            (store.path(20) / file.name).write_bytes(content[:length])
            newest, damaged = store.latest()
            if newest is not None and newest == store.path(20):
                # Only white space at the end may be missing.
                assert not content[length:].strip()
            else:
                assert newest == store.path(10)
                assert len(damaged) == 1
                assert str(store.path(20)) in damaged[0]
                cuts += 1
            shutil.rmtree(store.path(20))
    assert cuts > 30


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    checkpoint_of(tiny_model()).save(tmp_path / "c")
    for file in (tmp_path / "c").iterdir():
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 16
        original = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(CheckpointError) as caught:
            Checkpoint.load(tmp_path / "c")
        assert "\n" not in str(caught.value)
        file.write_bytes(original)
    Checkpoint.load(tmp_path / "c")


def test_a_missing_file_and_a_newer_format_are_refused(tmp_path: Path) -> None:
    checkpoint_of(tiny_model()).save(tmp_path / "c")
    (tmp_path / "c" / "tokenizer.spm").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.spm"):
        Checkpoint.load(tmp_path / "c")
    future = checkpoint_of(tiny_model())
    future.config["format"] = 2
    future.save(tmp_path / "d")
    with pytest.raises(CheckpointError, match="format 2, but this version reads format 1"):
        Checkpoint.load(tmp_path / "d")


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tiny_model())
    checkpoint.config["model"]["width"] = 32
    checkpoint.save(tmp_path / "c")
    with pytest.raises(CheckpointError, match="do not fit the architecture"):
        Checkpoint.load(tmp_path / "c").build_model()


def test_average_is_the_mean_of_weights(tmp_path: Path) -> None:
    models = [tiny_model(seed) for seed in (1, 2, 3)]
    paths = [tmp_path / str(n) for n in range(3)]
    for model, path in zip(models, paths, strict=True):
        checkpoint_of(model).save(path)
    mean = average(paths)
    for name, tensor in mean.items():
        parts = (weights_of(model)[name].double() for model in models)
        expected = sum(parts, torch.zeros((), dtype=torch.float64)) / 3
        assert torch.equal(tensor, expected.float())
    for name, tensor in average(paths[:1]).items():
        assert torch.equal(tensor, weights_of(models[0])[name])


def test_find_checkpoint_takes_a_run_or_a_checkpoint(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tiny_model())
    run = tmp_path / "run"
    with pytest.raises(CheckpointError, match="neither a checkpoint nor a run"):
        find_checkpoint(run)
    store = CheckpointStore(run / "checkpoints")
    checkpoint.save(store.path(5))
    checkpoint.save(store.path(7))
    assert find_checkpoint(run) == store.path(7)
    checkpoint.save(run / "final")
    assert find_checkpoint(run) == run / "final"
    assert find_checkpoint(store.path(5)) == store.path(5)


def test_a_directory_is_staged(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "directory"
    with pytest.raises(FileNotFoundError), staged_directory(target) as staging:
        (staging / "file").with_name("half").rename(staging / "missing" / "file")
    assert list(tmp_path.iterdir()) == []
    for content in ("first", "second"):
        with staged_directory(target) as staging:
            (staging / "file").write_text(content)
            assert not target.exists() or (target / "file").read_text() == "first"
        assert (target / "file").read_text() == content
    assert list(target.parent.iterdir()) == [target]


def test_an_interrupted_replacement_keeps_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "directory"
    target.mkdir()
    (target / "file").write_text("old")
    with pytest.raises(RuntimeError), staged_directory(target):
        raise RuntimeError
    assert (target / "file").read_text() == "old"


def test_config_is_readable_json(tmp_path: Path) -> None:
    checkpoint_of(tiny_model()).save(tmp_path / "c")
    config = json.loads((tmp_path / "c" / "config.json").read_text())
    assert config["model"]["width"] == 16
