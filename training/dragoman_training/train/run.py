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
import re
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.config.tables import flat, read_dict
from dragoman_training.data.prepare import prepare
from dragoman_training.data.prepared import PreparedData, load_prepared
from dragoman_training.errors import (
    CheckpointError,
    DivergedError,
    RecipeError,
    StoppedError,
    StorageError,
    TrainingError,
)
from dragoman_training.files import locked_directory, made_directory, remove_partial, write_text
from dragoman_training.report.records import Observer, ValidationRecord
from dragoman_training.train.checkpoint import (
    Checkpoint,
    CheckpointStore,
    average,
    check,
    load_weights,
    weights_of,
)
from dragoman_training.train.distributed import World, join_world
from dragoman_training.train.interrupts import StopRequest, exit_on_termination
from dragoman_training.train.memory import bound_compiled_products
from dragoman_training.train.precision import autocast_dtype, check_compiler
from dragoman_training.train.trainer import Trainer
from dragoman_training.train.validation import Validator

MAY_CHANGE = (
    "training.max_steps",
    "training.log_every",
    "training.device",
    # Another machine may be faster in another one.
    "training.precision",
    # What the advice after a diverged run names.
    "training.learning_rate",
    "training.warmup_steps",
    "training.clip_norm",
)
"""Settings that may differ when a run goes on, beside those of validation and checkpoints."""

_PATHS = re.compile(
    r"data\.(directory|(train|valid)_(source|target))|training\.initial|"
    r"data\.(corpora|validation)\.\d+\.(source|target|labels)"
)
"""What they lead to is in the prepared data, so they may move."""
_RECIPE, _DATA, _CHECKPOINTS, _FINAL = "recipe.json", "data", "checkpoints", "final"


def train(recipe: Recipe, output: Path, observer: Observer, threads: int | None = None) -> Path:
    """Train, or go on training. Returns the path of the final model.

    ``threads`` is how many PyTorch computes with on a CPU, in this process from now on; None leaves
    that to PyTorch.
    """
    bound_compiled_products()
    if threads is not None:
        torch.set_num_threads(threads)
    with join_world(recipe.training.device) as world:
        if recipe.training.precision != "auto":
            autocast_dtype(recipe.training.precision, world.device)
        if recipe.training.compile and world.device.type == "cpu":
            check_compiler()
        if not world.is_first:
            if world.tell(""):
                raise TrainingError  # the first process says why
            return _Run(recipe, output, world, Observer()).train()
        _check_is_a_run(output)
        with made_directory(output), locked_directory(output) as mine:
            try:
                if not mine:
                    raise RecipeError(f"{output}: another process is training there")
                with exit_on_termination():
                    _prepare(recipe, output, observer)
            except TrainingError as error:
                world.tell(str(error))
                raise
            world.tell("")
            try:
                return _Run(recipe, output, world, observer).train()
            except (DivergedError, StorageError) as error:
                raise type(error)(f"{error}. {_what_is_kept(output)}") from None
            finally:
                observer.close()


def _prepare(recipe: Recipe, output: Path, observer: Observer) -> None:
    """All that comes before the first step, in the first process only."""
    remove_partial(output)
    remove_partial(output / _CHECKPOINTS)
    begun = bool(CheckpointStore(output / _CHECKPOINTS).steps())
    if begun:
        _check_same_recipe(recipe, output)
    try:
        prepare(recipe, output / _DATA, observer.preparing, replace=not begun)
        write_text(output / _RECIPE, _dump(recipe))
    except OSError as error:
        raise StorageError(f"{output}: can't be written ({error.strerror})") from None
    finally:
        observer.prepared()


class _Run:
    """The loop around the trainer: when to log, validate, save and stop."""

    def __init__(self, recipe: Recipe, output: Path, world: World, observer: Observer) -> None:
        self.recipe = recipe
        self.output = output
        self.world = world
        self.observer = observer
        self.store = CheckpointStore(output / _CHECKPOINTS)
        self.data: PreparedData = load_prepared(output / _DATA)
        self.trainer = Trainer(recipe, self.data, world)
        self.validate: Validator | None = None
        if self.data.valid:
            self.validate = Validator(recipe, self.data, world)
        self.last_validation: ValidationRecord | None = None
        self._begun = time.monotonic()

    def train(self) -> Path:
        self._resume()
        trainer = self.trainer
        self.observer.started(self._facts(), trainer.progress.step, self.recipe.training.max_steps)
        with StopRequest() as stop:
            if trainer.progress.step and not self._is_finished():
                self._validate_if_due(stop)  # a stop may have come before this step's validation
            while not self._is_finished():
                record, stopped = trainer.update(stop.signal is not None)
                self.observer.stepped(trainer.progress.step, record)
                with trainer.off_the_clock():
                    validated = not stopped and self._validate_if_due(stop)
                    stopped = stopped or self._asked_to_stop(stop)
                    if stopped or validated or self._is_scheduled(trainer.progress.step):
                        self._save()
                if stopped and not self._is_finished():
                    self._leave(stop)
        return self._finish()

    def _is_finished(self) -> bool:
        done = self.trainer.progress.step >= self.recipe.training.max_steps
        return (done and not self._owes_validation()) or self.trainer.out_of_patience

    def _owes_validation(self) -> bool:
        """A validation is due at this step and has not been made."""
        progress = self.trainer.progress
        due = (
            progress.step % self.recipe.validation.every == 0
            or progress.step == self.recipe.training.max_steps
        )
        return self.validate is not None and due and progress.step not in progress.goodness

    def _is_scheduled(self, step: int) -> bool:
        """A checkpoint that is there in any run of this recipe, however often it was stopped."""
        return (
            step % self.recipe.checkpoints.every == 0
            or step == self.recipe.training.max_steps
            or step in self.trainer.progress.goodness
        )

    def _asked_to_stop(self, stop: StopRequest) -> bool:
        """Whether a signal came since the step; among several processes, the next step tells."""
        return self.world.size == 1 and stop.signal is not None

    def _leave(self, stop: StopRequest) -> None:
        step = self.trainer.progress.step
        message = f"stopped at step {step}, which is saved: the same command goes on from there"
        # Of several processes, one says so.
        raise StoppedError(message if self.world.is_first else "", stop.signal or signal.SIGTERM)

    def _resume(self) -> None:
        latest, damaged = self.store.latest()
        for message in damaged:
            self.observer.noted(f"passed over: {message}")
        if latest is not None:
            checkpoint = Checkpoint.load(latest)
            self.trainer.restore(checkpoint)
            self._begun -= self.trainer.progress.seconds
            self.observer.noted(f"going on from step {self.trainer.progress.step}")
        self.world.barrier()
        if self.world.is_first:
            self.store.drop_after(self.trainer.progress.step)
        self.world.barrier()

    def _validate_if_due(self, stop: StopRequest) -> bool:
        if not self._owes_validation():
            return False
        record = self._measure(lambda: self._asked_to_stop(stop))
        if record is None:
            return False
        self.last_validation = self.trainer.judge(record)
        self.observer.validated(self.last_validation)
        return True

    def _measure(self, asked_to_stop: Callable[[], bool]) -> ValidationRecord | None:
        """Validate the model as it is. None without validation text, or when asked to stop."""
        if self.validate is None:
            return None

        def watch(done: int, total: int) -> None:
            self.observer.validating(done, total)
            if asked_to_stop():
                raise _AskedToStop

        try:
            return self.validate(self.trainer.objective, self.trainer.progress.step, watch)
        except _AskedToStop:
            return None

    def _save(self) -> None:
        progress = self.trainer.progress
        progress.seconds = time.monotonic() - self._begun
        if self.world.is_first:
            path = self.store.path(progress.step)
            self.trainer.snapshot(self._config(self.last_validation)).save(path)
            self.store.keep_only(self._worth_keeping())
            self.observer.saved(path)
        self.world.barrier()

    def _scheduled(self) -> list[int]:
        return [step for step in self.store.steps() if self._is_scheduled(step)]

    def _worth_keeping(self) -> set[int]:
        """The last and the best of those on schedule, and the newest, which may be a stop's."""
        keep = self.recipe.checkpoints.keep
        return {*self._scheduled()[-keep:], *self._best(keep), self.store.steps()[-1]}

    def _best(self, count: int) -> list[int]:
        goodness = self.trainer.progress.goodness
        saved = set(self.store.steps())
        ranked = sorted((s for s in goodness if s in saved), key=lambda s: (-goodness[s], -s))
        return ranked[:count]

    def _finish(self) -> Path:
        """Make the final model, unless it is there: the mean of the last or best checkpoints."""
        final = self.output / _FINAL
        settings = self.recipe.checkpoints
        best = settings.average_of == "best"
        steps = sorted(self._best(settings.keep) if best else self._scheduled())
        whole = [step for step in steps if self._is_whole(step)]
        if best:
            chosen = sorted(sorted(whole, key=self._best(settings.keep).index)[: settings.average])
        else:
            chosen = whole[-settings.average :]
        if not chosen:
            raise CheckpointError(f"{self.output}: no checkpoint is whole; train again")
        up_to_date = self._final_steps(final) == chosen
        self.world.barrier()
        if up_to_date:
            self.observer.noted(f"this run is finished; its model is in {final}")
            return final
        load_weights(self.trainer.model, average([self.store.path(step) for step in chosen]))
        quality = self._measure(lambda: False)
        if quality is not None:
            self.observer.noted(
                f"the mean of steps {', '.join(map(str, chosen))}: {quality.summary()}"
            )
        if self.world.is_first:
            config = {**self._config(quality), "steps": chosen}
            Checkpoint(config, weights_of(self.trainer.model), self.data.tokenizers).save(final)
            self.observer.saved(final)
        self.world.barrier()
        return final

    def _is_whole(self, step: int) -> bool:
        try:
            check(self.store.path(step))
        except CheckpointError as error:
            self.observer.noted(f"passed over: {error}")
            return False
        return True

    def _final_steps(self, final: Path) -> list[int] | None:
        """The steps of which a final model was made; None where there is no whole one."""
        try:
            check(final)
            steps: list[int] | None = read_dict(final / "config.json").get("steps")
        except (CheckpointError, ValueError):
            return None
        return steps

    def _facts(self) -> dict[str, Any]:
        """What a person would like to know before the first step."""
        source_tokens, target_tokens = self.data.train.tokens
        provenance = self.data.provenance
        dropped = {
            **provenance["report"],
            "too_long_to_validate": provenance.get("valid_too_long", 0),
        }
        return {
            "parameters": sum(w.numel() for w in weights_of(self.trainer.model).values()),
            "vocabulary": self.data.tokenizers.target.size,
            "pairs": len(self.data.train),
            "examples": len(self.trainer.examples),
            "joined": self.trainer.examples.joined,
            "corpora": provenance["corpora"],
            "source_tokens": source_tokens,
            "target_tokens": target_tokens,
            "dropped": {k: count for k, count in dropped.items() if k != "kept" and count},
            "device": str(self.world.device),
            "precision": self.trainer.precision.name,
            "precision_reason": self.trainer.precision.reason,
            "threads": torch.get_num_threads() if self.world.device.type == "cpu" else 0,
            "processes": self.world.size,
        }

    def _config(self, quality: ValidationRecord | None) -> dict[str, Any]:
        recipe = self.recipe.to_dict()
        tokenizers = self.data.tokenizers
        vocabularies = {
            "source_vocabulary": tokenizers.source.size,
            "target_vocabulary": tokenizers.target.size,
        }
        return {
            "model": {**recipe["model"], **vocabularies},
            "source_language": self.recipe.data.source_language,
            "target_language": self.recipe.data.target_language,
            "quality": None if quality is None else asdict(quality),
            "recipe": recipe,
            "data": self.data.provenance,
            "progress": {
                "step": self.trainer.progress.step,
                "target_tokens": self.trainer.progress.target_tokens,
                "seconds": round(self.trainer.progress.seconds, 1),
            },
            "torch": torch.__version__,
            "precision": self.trainer.precision.name,
        }


class _AskedToStop(Exception):  # noqa: N818 - leaves a validation, and is no error
    pass


def _what_is_kept(output: Path) -> str:
    latest, _ = CheckpointStore(output / _CHECKPOINTS).latest()
    return f"The last good checkpoint is {latest}" if latest else "There was no checkpoint yet"


def _dump(recipe: Recipe) -> str:
    return json.dumps(recipe.to_dict(), indent=2, ensure_ascii=False) + "\n"


def _check_is_a_run(output: Path) -> None:
    """Nothing of a directory that is not ours may be touched."""
    if output.exists() and not output.is_dir():
        raise RecipeError(f"{output}: a file, not a directory")
    ours = any((output / name).exists() for name in (_RECIPE, f"{_DATA}/prepared.json"))
    if output.is_dir() and not ours:
        for other in output.iterdir():
            if other.name != f".{_DATA}.partial":
                raise RecipeError(f"{output}: neither empty nor a training run ({other.name})")


def _check_same_recipe(recipe: Recipe, output: Path) -> None:
    """A run goes on only with what it began with, or its result would be of neither recipe."""
    try:
        # What an older version did not know yet has its default.
        stored = recipe_from_dict(read_dict(output / _RECIPE))
    except RecipeError as error:
        raise RecipeError(f"{output / _RECIPE}: {error}") from None
    before, now = (flat(json.loads(_dump(r))) for r in (stored, recipe))
    may_change: tuple[str, ...] = MAY_CHANGE
    if recipe.training.schedule == "cosine":  # its rate depends on the number of steps
        may_change = tuple(key for key in may_change if key != "training.max_steps")
    for key in sorted(before.keys() | now.keys()):
        free = key in may_change or key.startswith(("validation.", "checkpoints."))
        is_path = _PATHS.fullmatch(key) is not None
        if not free and not is_path and before.get(key) != now.get(key):
            raise RecipeError(
                f"{output} holds a run with {key} = {before.get(key)!r}, not {now.get(key)!r}: "
                "choose another --output, or go on with the same setting"
            )
