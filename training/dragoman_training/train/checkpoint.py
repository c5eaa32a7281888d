"""Checkpoints: directories that hold a model, and what it takes to go on training it.

    config.json           architecture, languages, recipe, data, quality on the validation text
    model.safetensors     weights
    tokenizer.spm         or source.spm and target.spm
    foreign.json          special tokens and tables of ids, of a model from elsewhere
    shortlist.npz         the shortlist of the bundle that training began with
    training.json         position in the data, best result so far (not in a final model)
    optimizer.safetensors the optimizer's moments                  (not in a final model)
    checkpoint.json       size and hash of each of these files

A checkpoint appears under its name when it is complete. Nothing in it is ever unpickled.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.errors import CheckpointError, StorageError
from dragoman_training.files import remove, sha256, staged_directory
from dragoman_training.models.base import AnyModel
from dragoman_training.models.build import build_model, settings_from_dict

FORMAT = 1
_CONFIG, _WEIGHTS, _STATE, _OPTIMIZER, _FILES = (
    "config.json",
    "model.safetensors",
    "training.json",
    "optimizer.safetensors",
    "checkpoint.json",
)


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds. The last two are only for going on."""

    config: dict[str, Any]
    weights: dict[str, Tensor]
    tokenizers: TokenizerPair
    state: dict[str, Any] | None = None
    optimizer: dict[str, Tensor] | None = None

    def save(self, path: Path) -> None:
        try:
            self._write(path)
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise StorageError(f"{path}: can't be written ({reason})") from None

    def _write(self, path: Path) -> None:
        with staged_directory(path) as staging:
            _write_json(staging / _CONFIG, {"format": FORMAT, **self.config})
            save_file(self.weights, staging / _WEIGHTS)
            for name, model in self.tokenizers.files().items():
                (staging / name).write_bytes(model)
            if self.state is not None and self.optimizer is not None:
                _write_json(staging / _STATE, self.state)
                save_file(self.optimizer, staging / _OPTIMIZER)
            files = {
                file.name: {"bytes": file.stat().st_size, "sha256": sha256(file)}
                for file in sorted(staging.iterdir())
            }
            _write_json(staging / _FILES, {"files": files})

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        check(path)
        try:
            config = json.loads((path / _CONFIG).read_text())
            if config["format"] != FORMAT:
                raise CheckpointError(
                    f"{path}: format {config['format']}, but this version reads format {FORMAT}"
                )
            resumable = (path / _STATE).exists()
            return cls(
                config=config,
                weights=load_file(path / _WEIGHTS),
                tokenizers=TokenizerPair.load(path),
                state=json.loads((path / _STATE).read_text()) if resumable else None,
                optimizer=load_file(path / _OPTIMIZER) if resumable else None,
            )
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise CheckpointError(f"{path}: not a usable checkpoint ({error})") from None

    def build_model(self) -> AnyModel:
        """The model, with its weights."""
        model_config = dict(self.config["model"])
        source, target = (model_config.pop(f"{s}_vocabulary") for s in ("source", "target"))
        try:
            model = build_model(
                settings_from_dict(model_config),
                source_vocabulary=source,
                target_vocabulary=target,
            )
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint's model can't be built: {error}") from None
        load_weights(model, self.weights)
        return model


def check(path: Path) -> None:
    """Raise ``CheckpointError`` unless every file is there, with its size and hash."""
    if not path.is_dir():
        raise CheckpointError(f"{path}: no such checkpoint")
    try:
        files = json.loads((path / _FILES).read_text())["files"]
        for name, expected in files.items():
            file = path / name
            if file.stat().st_size != expected["bytes"] or sha256(file) != expected["sha256"]:
                raise CheckpointError(f"{file}: damaged, it is not as it was written")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: not a checkpoint ({error})") from None


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters by name; one that is used in several places appears once."""
    return {name: p.detach().cpu().clone() for name, p in model.named_parameters()}


def load_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    if odd := sorted(parameters.keys() ^ weights.keys()):
        raise CheckpointError(f"the weights do not fit the architecture: {odd[0]}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            if parameter.shape != weights[name].shape:
                raise CheckpointError(
                    f"the weights do not fit the architecture: {name} is "
                    f"{list(weights[name].shape)}, not {list(parameter.shape)}"
                )
            parameter.copy_(weights[name])


def average(checkpoints: list[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints, which must be whole."""
    total: dict[str, Tensor] = {}
    for path in checkpoints:
        for name, tensor in load_file(path / _WEIGHTS).items():
            double = tensor.double()
            total[name] = total[name] + double if name in total else double
    return {name: (tensor / len(checkpoints)).float() for name, tensor in total.items()}


def mixed(weights: dict[str, Tensor], others: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """The weights with a share of other ones of the same model."""
    if not share:
        return weights
    return {
        name: ((1 - share) * tensor.double() + share * others[name].double()).float()
        for name, tensor in weights.items()
    }


class CheckpointStore:
    """The checkpoints of one run, by step."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, step: int) -> Path:
        return self.directory / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """Steps with a checkpoint, damaged or not, in order."""
        names = (p.name.removeprefix("step-") for p in self.directory.glob("step-*") if p.is_dir())
        return sorted(int(name) for name in names if name.isdecimal())

    def latest(self) -> tuple[Path | None, list[str]]:
        """The newest checkpoint that is whole, and what is wrong with newer ones."""
        damaged: list[str] = []
        for step in reversed(self.steps()):
            path = self.path(step)
            try:
                check(path)
            except CheckpointError as error:
                damaged.append(str(error))
                continue
            return path, damaged
        return None, damaged

    def drop_after(self, step: int) -> None:
        """Forget checkpoints of a future that is about to be trained again."""
        for later in self.steps():
            if later > step:
                remove(self.path(later))

    def keep_only(self, steps: set[int]) -> None:
        for step in self.steps():
            if step not in steps:
                remove(self.path(step))


def is_ours(path: Path) -> bool:
    """Whether there is a checkpoint or a run, damaged or not."""
    return any((path / name).exists() for name in (_FILES, "final", "checkpoints"))


def find_checkpoint(path: Path) -> Path:
    """A checkpoint from its own path or from that of its run: the final one, or the newest."""
    if (path / _FILES).exists():
        return path
    if (path / "final" / _FILES).exists():
        return path / "final"
    newest, damaged = CheckpointStore(path / "checkpoints").latest()
    if newest is None:
        reason = damaged[0] if damaged else f"{path}: neither a checkpoint nor a run with one"
        raise CheckpointError(reason)
    return newest


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
