"""The training loop.

What is computed depends on the recipe, the data and the step alone: random numbers are seeded for
each step, and the order of the data is a function of seed and epoch. So a run that goes on from a
checkpoint ends with the same weights as one that was never stopped.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.batch import Batch
from dragoman_training.data.batching import Indices, Position, batches_from
from dragoman_training.data.joined import JoinedPairs
from dragoman_training.data.prepared import PreparedData
from dragoman_training.errors import CheckpointError, DivergedError, RecipeError
from dragoman_training.models.base import AnyModel
from dragoman_training.models.build import build_model
from dragoman_training.report.records import StepRecord, ValidationRecord
from dragoman_training.train.checkpoint import Checkpoint, load_weights, weights_of
from dragoman_training.train.distributed import World
from dragoman_training.train.objective import Objective
from dragoman_training.train.optimizers import Optimizers
from dragoman_training.train.precision import Precision, autocast_dtype, choose_precision
from dragoman_training.train.schedule import learning_rate


@dataclass
class Progress:
    """How far a run is: with the weights and the optimizer, all that it takes to go on."""

    step: int = 0
    position: Position = field(default_factory=Position)
    target_tokens: int = 0
    seconds: float = 0.0
    """Spent training, validations and saving included."""
    best: float | None = None
    validations_since_best: int = 0
    metric: str = ""
    goodness: dict[int, float] = field(default_factory=dict)
    """The metric of each validated step, such that more is better."""
    first: dict[str, float] = field(default_factory=dict)
    """BLEU of each validation text before the first step, where training began with a model."""
    smoothed: float = 0.0
    """Sums over the steps since the last record: of the loss, smoothed and not, and of tokens."""
    nll: float = 0.0
    tokens: int = 0
    scaler: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "Progress":
        state = dict(state)
        state["position"] = Position(**state["position"])
        state["goodness"] = {int(step): value for step, value in state["goodness"].items()}
        return cls(**state)


MAX_SKIPPED = 20
"""Steps in a row that loss scaling may skip before the run counts as diverged."""


class Trainer:
    """Owns the model, its optimizer and the position in the data."""

    def __init__(self, recipe: Recipe, data: PreparedData, world: World) -> None:
        self.recipe = recipe
        self.data = data
        self.world = world
        self.progress = Progress()
        settings = recipe.training
        torch.manual_seed(recipe.seed)
        self.model = build_model(
            recipe.model,
            source_vocabulary=data.tokenizers.source.size,
            target_vocabulary=data.tokenizers.target.size,
        ).to(world.device)
        if data.initial:
            load_weights(self.model, data.initial.weights)
        self.precision = _precision(settings.precision, self.model, world)
        dtype = autocast_dtype(self.precision.name, world.device)
        self.objective = Objective(self.model, settings.label_smoothing, dtype)
        if settings.compile:
            for part in self.model.compiled_parts():
                part.compile(dynamic=True)
        self._parallel = DistributedDataParallel(self.objective) if world.size > 1 else None
        self._names = [name for name, _ in self.model.named_parameters()]
        self._parameters = list(self.model.parameters())
        self.optimizers = Optimizers(self.model, settings)
        self._scaler = torch.GradScaler(world.device.type, enabled=dtype is torch.float16)
        self._skipped = 0
        self._clock = time.perf_counter()
        self.progress.metric = recipe.validation.metric
        self.examples = _examples(recipe, data)
        self._rewind()

    def _rewind(self) -> None:
        """Read the data from the position that the progress says."""
        self._batches = batches_from(
            self.examples,
            self.progress.position,
            tokens=self.recipe.training.batch_tokens,
            seed=self.recipe.seed,
        )

    def update(self, stop: bool) -> tuple[StepRecord | None, bool]:
        """One step. Returns what is to be logged, and whether any process was asked to stop."""
        settings = self.recipe.training
        progress = self.progress
        drawn = [next(self._batches) for _ in range(settings.accumulate)]
        others = len(self.data.tokenizers.ends.start) + 1  # of each target, beside its text
        tokens = sum(int((self.examples.lengths(b)[:, 1] + others).sum()) for b, _ in drawn)
        step = progress.step + 1
        rate = learning_rate(step, settings, self.recipe.model.width)
        self.optimizers.set_rate(rate)
        self.objective.train()
        torch.manual_seed(_step_seed(self.recipe.seed, step, self.world.rank))
        sums = torch.zeros(3, dtype=torch.float64)
        for number, (indices, _) in enumerate(drawn, start=1):
            sums[:2] += self._backward(indices, tokens, synchronise=number == len(drawn))
        sums[2] = stop
        smoothed, nll, stops = self.world.sum(sums.to(self.world.device)).tolist()
        if not math.isfinite(smoothed):
            self._diverged("loss", step)
        for optimizer in self.optimizers.all:
            self._scaler.unscale_(optimizer)
        norm = float(
            torch.nn.utils.clip_grad_norm_(self._parameters, settings.clip_norm or math.inf)
        )
        # The scaler of float16 skips such a step by itself, and lowers its scale.
        self._skipped = 0 if math.isfinite(norm) else self._skipped + 1
        if self._skipped > (MAX_SKIPPED if self._scaler.is_enabled() else 0):
            self._diverged("gradient", step)
        for optimizer in self.optimizers.all:
            self._scaler.step(optimizer)
        self._scaler.update()
        self.optimizers.clear()
        progress.step = step
        progress.position = drawn[-1][1]
        progress.target_tokens += tokens
        progress.smoothed += smoothed
        progress.nll += nll
        progress.tokens += tokens
        due = step % settings.log_every == 0 or step == settings.max_steps
        return self._record(rate, norm) if due else None, stops > 0

    def _backward(self, indices: Indices, tokens: int, *, synchronise: bool) -> Tensor:
        """Gradients of this process's share of one batch. Returns its two summed losses."""
        mine = indices[self.world.rank :: self.world.size]
        # A process without a share must still take part when gradients are added up.
        weight = 1.0 if len(mine) else 0.0
        batch = Batch.of(
            [self.examples[int(i)] for i in (mine if len(mine) else indices[:1])],
            self.world.device,
            self.data.tokenizers.ends,
        )
        parallel = self._parallel
        with parallel.no_sync() if parallel and not synchronise else nullcontext():
            loss = (parallel or self.objective)(batch)
            # Gradients are averaged over the processes, but the mean is to be over all tokens.
            share = weight * self.world.size / tokens
            self._scaler.scale(loss.smoothed * share).backward()
        return weight * torch.stack((loss.smoothed.detach(), loss.nll)).double().cpu()

    def _diverged(self, what: str, step: int) -> NoReturn:
        raise DivergedError(
            f"the {what} is no longer a number at step {step}: lower training.learning_rate, "
            "lengthen training.warmup_steps, or set training.clip_norm"
        )

    def _record(self, rate: float, norm: float) -> StepRecord:
        progress, now = self.progress, time.perf_counter()
        record = StepRecord(
            step=progress.step,
            epoch=progress.position.epoch,
            loss=progress.smoothed / progress.tokens,
            perplexity=math.exp(min(700.0, progress.nll / progress.tokens)),
            learning_rate=rate,
            gradient_norm=norm,
            tokens_per_second=progress.tokens / (now - self._clock),
        )
        progress.smoothed, progress.nll, progress.tokens = 0.0, 0.0, 0
        self._clock = now
        return record

    @contextmanager
    def off_the_clock(self) -> Iterator[None]:
        """Leave the time of validating and saving out of tokens per second."""
        began = time.perf_counter()
        yield
        self._clock += time.perf_counter() - began

    def judge(self, record: ValidationRecord) -> ValidationRecord:
        """Remember a validation. Returns it with the verdict whether it is the best so far."""
        progress = self.progress
        goodness = record.goodness(self.recipe.validation.metric)
        progress.goodness[progress.step] = goodness
        is_best = progress.best is None or goodness > progress.best
        if is_best:
            progress.best = goodness
            progress.validations_since_best = 0
        else:
            progress.validations_since_best += 1
        return replace(record, is_best=is_best)

    @property
    def out_of_patience(self) -> bool:
        patience = self.recipe.validation.patience
        return 0 < patience <= self.progress.validations_since_best

    def snapshot(self, config: dict[str, Any]) -> Checkpoint:
        """All that it takes to go on from here."""
        weights = weights_of(self.model)
        for name, tensor in weights.items():
            # A bias of minus infinity bans a token: models from elsewhere may have some.
            is_bias = name == "projection.bias"
            if not (tensor.isfinite() | (is_bias & tensor.isneginf())).all():
                self._diverged(f"weight {name}", self.progress.step)
        moments: dict[str, Tensor] = {}
        for name, parameter in zip(self._names, self._parameters, strict=True):
            for key, value in self.optimizers.moments(parameter).items():
                moments[f"{name}.{key}"] = value.cpu().clone()
        self.progress.scaler = self._scaler.state_dict()
        return Checkpoint(
            config=config,
            weights=weights,
            tokenizers=self.data.tokenizers,
            state=asdict(self.progress),
            optimizer=moments,
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a snapshot."""
        if checkpoint.state is None or checkpoint.optimizer is None:
            raise RecipeError("a final model has no optimizer state: it can't be trained further")
        load_weights(self.model, checkpoint.weights)
        for name, parameter in zip(self._names, self._parameters, strict=True):
            prefix = f"{name}."
            moments = {
                key.removeprefix(prefix): value.to(parameter.device)
                for key, value in checkpoint.optimizer.items()
                if key.startswith(prefix) and "." not in key.removeprefix(prefix)
            }
            self.optimizers.set_moments(parameter, moments)
        try:
            self.progress = Progress.from_dict(checkpoint.state)
        except (KeyError, TypeError) as error:
            raise CheckpointError(
                f"the checkpoint's training state is of another version ({error})"
            ) from None
        if self.progress.metric != self.recipe.validation.metric:
            # What is best by one metric says nothing about another.
            self.progress.metric = self.recipe.validation.metric
            self.progress.best, self.progress.goodness = None, {}
            self.progress.validations_since_best = 0
        if self.progress.scaler:
            self._scaler.load_state_dict(self.progress.scaler)
        self._rewind()


def _examples(recipe: Recipe, prepared: PreparedData) -> JoinedPairs:
    data = recipe.data
    return JoinedPairs(
        prepared.train,
        share=data.joined,
        most=data.joined_pairs,
        max_tokens=data.max_tokens - prepared.tokenizers.ends.most_around,
        seed=recipe.seed,
        mixture=prepared.mixture,
    )


def _precision(wanted: str, model: AnyModel, world: World) -> Precision:
    """What all processes compute in: the first one chooses, where there is a choice."""
    chosen = choose_precision(wanted if world.is_first else "float32", model, world.device)
    name, _, reason = world.tell("\n".join(chosen)).partition("\n")
    return Precision(name, reason)


def _step_seed(seed: int, step: int, rank: int) -> int:
    """A seed of its own for each step of each process."""
    return int(np.random.SeedSequence((seed, step, rank)).generate_state(1, np.uint64)[0] >> 1)
