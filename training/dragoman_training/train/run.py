"""A training run from recipe to final model, in a directory of its own.

    recipe.json      the recipe with every default filled in
    data/            tokenizers and token ids
    checkpoints/     the last and the best
    metrics.jsonl    what was logged, a line each
    tensorboard/     the same, for TensorBoard
    final/           the model to use: a mean of checkpoints, or the best one where that is better

The same command on the same directory goes on where the run stopped.
"""

import functools
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from dragoman_training.config.recipe import Recipe
from dragoman_training.config.tables import read_dict
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
from dragoman_training.report.final_choice import Candidate, choose
from dragoman_training.report.forgetting import Change, bleu_by_text, changes, forgetting_warning
from dragoman_training.report.records import Observer, ValidationRecord
from dragoman_training.train.checkpoint import (
    Checkpoint,
    CheckpointStore,
    average,
    check,
    load_weights,
    mixed,
    weights_of,
)
from dragoman_training.train.distributed import World, join_world
from dragoman_training.train.interrupts import StopRequest, exit_on_termination
from dragoman_training.train.memory import bound_compiled_products
from dragoman_training.train.precision import autocast_dtype, check_compiler
from dragoman_training.train.provenance import config, facts
from dragoman_training.train.retention import Retention
from dragoman_training.train.run_directory import (
    CHECKPOINTS,
    DATA,
    FINAL,
    RECIPE,
    check_is_a_run,
    check_same_recipe,
    dump,
    with_defaults_of_run,
)
from dragoman_training.train.trainer import Trainer
from dragoman_training.train.validation import Validator


def train(recipe: Recipe, output: Path, observer: Observer, threads: int | None = None) -> Path:
    """Train, or go on training. Returns the path of the final model.

    ``threads`` is how many PyTorch computes with on a CPU, in this process from now on; None leaves
    that to PyTorch.
    """
    bound_compiled_products()
    if threads is not None:
        torch.set_num_threads(threads)
    recipe = with_defaults_of_run(recipe, output)
    with join_world(recipe.training.device) as world:
        if recipe.training.precision != "auto":
            autocast_dtype(recipe.training.precision, world.device)
        if recipe.training.compile and world.device.type == "cpu":
            check_compiler()
        if not world.is_first:
            if world.tell(""):
                raise TrainingError  # the first process says why
            return _Run(recipe, output, world, Observer()).train()
        check_is_a_run(output)
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
    remove_partial(output / CHECKPOINTS)
    begun = bool(CheckpointStore(output / CHECKPOINTS).steps())
    if begun:
        check_same_recipe(recipe, output)
    try:
        prepare(recipe, output / DATA, observer.preparing, replace=not begun)
        write_text(output / RECIPE, dump(recipe))
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
        self.store = CheckpointStore(output / CHECKPOINTS)
        self.data: PreparedData = load_prepared(output / DATA)
        self.trainer = Trainer(recipe, self.data, world)
        self.retention = Retention(recipe, self.store, self.trainer)
        self.validate: Validator | None = None
        if self.data.valid:
            self.validate = Validator(recipe, self.data, world)
        self.last_validation: ValidationRecord | None = None
        self._begun = time.monotonic()

    def train(self) -> Path:
        self._resume()
        trainer = self.trainer
        self.observer.started(
            facts(self.trainer), trainer.progress.step, self.recipe.training.max_steps
        )
        for warning in self.recipe.warnings():
            self.observer.noted(f"warning: {warning}")
        with StopRequest() as stop:
            if not trainer.progress.step and self.data.initial:
                self._measure_initial(stop)
            elif trainer.progress.step and not self._is_finished():
                self._validate_if_due(stop)  # a stop may have come before this step's validation
            while not self._is_finished():
                record, stopped = trainer.update(stop.signal is not None)
                self.observer.stepped(trainer.progress.step, record)
                with trainer.off_the_clock():
                    validated = not stopped and self._validate_if_due(stop)
                    stopped = stopped or self._asked_to_stop(stop)
                    if stopped or validated or self.retention.is_scheduled(trainer.progress.step):
                        self._save()
                if stopped and not self._is_finished():
                    self._leave(stop)
        return self._finish()

    def _measure_initial(self, stop: StopRequest) -> None:
        """Measure the model that training begins with, and keep it: what is learnt may be worse."""
        if self._validate_if_due(stop):
            self._save()

    def _is_finished(self) -> bool:
        done = self.trainer.progress.step >= self.recipe.training.max_steps
        return (done and not self._owes_validation()) or self.trainer.out_of_patience

    def _owes_validation(self) -> bool:
        """A validation is due at this step and has not been made."""
        progress = self.trainer.progress
        due = (
            progress.step % self.recipe.validate_every == 0
            or progress.step == self.recipe.training.max_steps
        )
        return self.validate is not None and due and progress.step not in progress.goodness

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
        if self.data.initial and not record.step:
            self.trainer.progress.first = self._bleu(record)
        else:
            self._warn_of_forgetting(record)
        return True

    def _bleu(self, record: ValidationRecord | None) -> dict[str, float]:
        names = [text.name for text in self.data.valid]
        return {} if record is None else bleu_by_text(record, names)

    def _warn_of_forgetting(self, record: ValidationRecord | None) -> list[Change]:
        """Compare a model with the one that training began with."""
        found = changes(self.trainer.progress.first, self._bleu(record))
        if message := forgetting_warning(found, self.recipe.validation.forgetting):
            self.observer.noted(f"warning: {message}")
        return found

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
            self.trainer.snapshot(config(self.trainer, self.last_validation)).save(path)
            self.store.keep_only(self.retention.worth_keeping())
            self.observer.saved(path)
        self.world.barrier()

    def _finish(self) -> Path:
        """Make the final model, unless it is there: the better of its candidates."""
        final = self.output / FINAL
        candidates = self.retention.final_candidates(functools.cache(self._is_whole))
        if not candidates:
            raise CheckpointError(f"{self.output}: no checkpoint is whole; train again")
        up_to_date = self._final_candidates(final) == candidates
        self.world.barrier()
        if up_to_date:
            self.observer.noted(f"this run is finished; its model is in {final}")
            return final
        measured = [self._measure_mean(steps) for steps in candidates]
        chosen, reason = choose(measured, self.recipe.validation.metric)
        self.observer.noted(reason)
        if gained := self._warn_of_forgetting(chosen.quality):
            self.observer.noted(
                f"BLEU since the model that training began with: {', '.join(map(str, gained))}"
            )
        self._load_mean(chosen.steps)
        if self.world.is_first:
            final_config = {
                **config(self.trainer, chosen.quality),
                "steps": list(chosen.steps),
                "candidates": [each.to_dict() for each in measured],
                "initial_share": self.recipe.checkpoints.initial_share,
                "began_with": self.trainer.progress.first,
            }
            Checkpoint(final_config, weights_of(self.trainer.model), self.data.tokenizers).save(
                final
            )
            self.observer.saved(final)
        self.world.barrier()
        return final

    def _load_mean(self, steps: Sequence[int]) -> None:
        weights = average([self.store.path(step) for step in steps])
        if self.data.initial:
            share = self.recipe.checkpoints.initial_share
            weights = mixed(weights, self.data.initial.weights, share)
        load_weights(self.trainer.model, weights)

    def _measure_mean(self, steps: list[int]) -> Candidate:
        """Measure the mean of these checkpoints, where there is validation text."""
        self._load_mean(steps)
        candidate = Candidate(steps, self._measure(lambda: False))
        if candidate.quality is not None:
            self.observer.noted(f"{candidate.name}: {candidate.quality.summary()}")
        return candidate

    def _is_whole(self, step: int) -> bool:
        try:
            check(self.store.path(step))
        except CheckpointError as error:
            self.observer.noted(f"passed over: {error}")
            return False
        return True

    def _final_candidates(self, final: Path) -> list[list[int]] | None:
        """The steps among which a final model was chosen; None where there is no whole one."""
        try:
            check(final)
            told = read_dict(final / "config.json")
        except (CheckpointError, ValueError):
            return None
        candidates = told.get("candidates", [])
        if told.get("initial_share", 0.0) != self.recipe.checkpoints.initial_share:
            return None
        return [candidate["steps"] for candidate in candidates]


class _AskedToStop(Exception):  # noqa: N818 - leaves a validation, and is no error
    pass


def _what_is_kept(output: Path) -> str:
    latest, _ = CheckpointStore(output / CHECKPOINTS).latest()
    return f"The last good checkpoint is {latest}" if latest else "There was no checkpoint yet"
