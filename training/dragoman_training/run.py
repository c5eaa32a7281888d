"""A training run from recipe to final model, in a directory of its own.

    recipe.json      the recipe with every default filled in
    data/            tokenizers and token ids
    checkpoints/     the last and the best
    metrics.jsonl    what was logged, a line each
    tensorboard/     the same, for TensorBoard
    final/           the model to use, averaged if the recipe says so

The same command on the same directory goes on where the run stopped.
"""

import json
import time
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from dragoman_training.checkpoint import Checkpoint, CheckpointStore, average, weights_of
from dragoman_training.distributed import World, join_world
from dragoman_training.errors import CheckpointError, DivergedError, RecipeError, StoppedError
from dragoman_training.files import locked_directory, made_directory, remove_partial, write_text
from dragoman_training.interrupts import StopRequest
from dragoman_training.prepare import PreparedData, load_prepared, prepare
from dragoman_training.recipe import Recipe
from dragoman_training.records import Observer
from dragoman_training.trainer import Trainer
from dragoman_training.validation import Validator

MAY_CHANGE = ("training.max_steps", "training.log_every", "training.device")
"""Settings that may differ when a run goes on, beside those of validation and checkpoints."""


def train(recipe: Recipe, output: Path, observer: Observer) -> Path:
    """Train, or go on training. Returns the path of the final model."""
    with join_world(recipe.training.device) as world, made_directory(output):
        if not world.is_first:
            world.barrier()
            return _Run(recipe, output, world, Observer()).train()
        with locked_directory(output) as mine:
            if not mine:
                raise RecipeError(f"{output}: another process is training there")
            remove_partial(output)
            remove_partial(output / "checkpoints")
            _check_same_recipe(recipe, output)
            try:
                prepare(recipe, output / "data", observer.preparing)
                write_text(output / "recipe.json", _dump(recipe))
                world.barrier()
                return _Run(recipe, output, world, observer).train()
            except DivergedError as error:
                raise DivergedError(f"{error}. {_what_is_kept(output)}") from None
            finally:
                observer.close()


class _Run:
    """The loop around the trainer: when to log, validate, save and stop."""

    def __init__(self, recipe: Recipe, output: Path, world: World, observer: Observer) -> None:
        self.recipe = recipe
        self.output = output
        self.world = world
        self.observer = observer
        self.store = CheckpointStore(output / "checkpoints")
        self.data: PreparedData = load_prepared(output / "data")
        self.trainer = Trainer(recipe, self.data, world)
        self.validate: Validator | None = None
        if self.data.valid is not None:
            self.validate = Validator(recipe, self.data, self.data.valid, world)
        self._begun = time.monotonic()

    @property
    def final(self) -> Path:
        return self.output / "final"

    def train(self) -> Path:
        self._resume()
        trainer, progress = self.trainer, self.trainer.progress
        self.observer.started(self._facts(), progress.step, self.recipe.training.max_steps)
        finished = progress.step >= self.recipe.training.max_steps or trainer.out_of_patience
        if finished and self.final.exists():
            self.observer.noted("this run is finished; its model is in final/")
            return self.final
        with StopRequest() as stop:
            while not finished:
                record, stopped = trainer.update(stop.signal is not None)
                self.observer.stepped(progress.step, record)
                finished = progress.step >= self.recipe.training.max_steps
                validated = self._is_due(self.recipe.validation.every, finished) and self._judge()
                finished = finished or trainer.out_of_patience
                if stopped or validated or self._is_due(self.recipe.checkpoints.every, finished):
                    self._save()
                trainer.restart_clock()
                if stopped and not finished:
                    raise StoppedError(
                        f"stopped at step {progress.step}, which is saved: "
                        "the same command goes on from there",
                        stop.signal or 15,
                    )
        if self.world.is_first:
            self._finish()
        self.world.barrier()
        return self.final

    def _is_due(self, every: int, finished: bool) -> bool:
        return finished or self.trainer.progress.step % every == 0

    def _resume(self) -> None:
        latest, damaged = self.store.latest()
        for message in damaged:
            self.observer.noted(f"passed over: {message}")
        self.world.barrier()
        if latest is None:
            return
        checkpoint = Checkpoint.load(latest)
        self.trainer.restore(checkpoint)
        self._begun -= self.trainer.progress.seconds
        if self.world.is_first:
            self.store.drop_after(self.trainer.progress.step)
            self.observer.noted(f"going on from step {self.trainer.progress.step}")

    def _judge(self) -> bool:
        if self.validate is None:
            return False
        record = self.validate(
            self.trainer.objective, self.trainer.progress.step, self.observer.validating
        )
        self.observer.validated(self.trainer.judge(record))
        return True

    def _save(self) -> None:
        progress = self.trainer.progress
        progress.seconds = time.monotonic() - self._begun
        if self.world.is_first:
            path = self.store.path(progress.step)
            try:
                self.trainer.snapshot(self._config()).save(path)
            except (OSError, SafetensorError) as error:
                raise CheckpointError(
                    f"{path}: can't be written ({error}). {_what_is_kept(self.output)}"
                ) from None
            self.store.keep_only(self._worth_keeping())
            self.observer.saved(path)
        self.world.barrier()

    def _worth_keeping(self) -> set[int]:
        keep = self.recipe.checkpoints.keep
        return set(self.store.steps()[-keep:]) | set(self._best(keep))

    def _best(self, count: int) -> list[int]:
        goodness = self.trainer.progress.goodness
        saved = set(self.store.steps())
        ranked = sorted((s for s in goodness if s in saved), key=lambda s: (-goodness[s], -s))
        return ranked[:count]

    def _finish(self) -> None:
        """Make the final model: the mean of checkpoints, or the best or last of them."""
        settings = self.recipe.checkpoints
        steps = self.store.steps()[-settings.average :]
        if settings.average_of == "best" and self.validate is not None:
            steps = sorted(self._best(settings.average))
        weights = average([self.store.path(step) for step in steps])
        config = {**self._config(), "steps": steps}
        Checkpoint(config, weights, self.data.tokenizers).save(self.final)
        self.observer.saved(self.final)

    def _facts(self) -> dict[str, Any]:
        """What a person would like to know before the first step."""
        source_tokens, target_tokens = self.data.train.tokens
        return {
            "parameters": sum(w.numel() for w in weights_of(self.trainer.model).values()),
            "vocabulary": self.data.tokenizers.target.size,
            "pairs": len(self.data.train),
            "source_tokens": source_tokens,
            "target_tokens": target_tokens,
            "dropped": {
                reason: count
                for reason, count in self.data.provenance["report"].items()
                if reason != "kept" and count
            },
            "device": str(self.world.device),
            "processes": self.world.size,
        }

    def _config(self) -> dict[str, Any]:
        model = self.recipe.to_dict()["model"]
        tokenizers = self.data.tokenizers
        return {
            "model": {
                **model,
                "source_vocabulary": tokenizers.source.size,
                "target_vocabulary": tokenizers.target.size,
            },
            "source_language": self.recipe.data.source_language,
            "target_language": self.recipe.data.target_language,
            "recipe": self.recipe.to_dict(),
            "data": self.data.provenance,
            "progress": {
                "step": self.trainer.progress.step,
                "target_tokens": self.trainer.progress.target_tokens,
                "seconds": round(self.trainer.progress.seconds, 1),
            },
            "torch": torch.__version__,
        }


def _what_is_kept(output: Path) -> str:
    latest, _ = CheckpointStore(output / "checkpoints").latest()
    return f"The last good checkpoint is {latest}" if latest else "There was no checkpoint yet"


def _dump(recipe: Recipe) -> str:
    return json.dumps(recipe.to_dict(), indent=2, ensure_ascii=False) + "\n"


def _check_same_recipe(recipe: Recipe, output: Path) -> None:
    """A run goes on only with what it began with, or its result would be of neither recipe."""
    path = output / "recipe.json"
    if not path.exists():
        return
    before, now = _flat(json.loads(path.read_text())), _flat(json.loads(_dump(recipe)))
    may_change: tuple[str, ...] = MAY_CHANGE
    if recipe.training.schedule == "cosine":  # its rate depends on the number of steps
        may_change = tuple(key for key in may_change if key != "training.max_steps")
    for key in sorted(before.keys() | now.keys()):
        free = key in may_change or key.startswith(("validation.", "checkpoints."))
        is_path = key.startswith(("data.train_", "data.valid_"))  # compared by content
        if not free and not is_path and before.get(key) != now.get(key):
            raise RecipeError(
                f"{output} holds a run with {key} = {before.get(key)!r}, not {now.get(key)!r}: "
                "choose another --output, or go on with the same setting"
            )


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat
