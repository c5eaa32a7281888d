"""A recipe: all that defines a training run, as one TOML file.

Each part owns its settings and checks them; here they are only put together.
"""

import dataclasses
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dragoman_training.config.checks import above, at_least, at_most, literals, probability
from dragoman_training.config.data_settings import DataSettings
from dragoman_training.config.tables import build, override
from dragoman_training.data.rules.placeholders import MAX_PLACEHOLDERS
from dragoman_training.data.text.toy import ToySettings
from dragoman_training.data.tokenizer import TokenizerSettings
from dragoman_training.errors import RecipeError
from dragoman_training.models.settings import PRESETS, RecurrentSettings, TransformerSettings

_MAX_WARMUP = 4000
"""The paper's. Longer runs need no longer warm-up."""
_MIN_WARMUP_OF_RATE = 2000
"""Steps. Shorter warm-ups have the paper's peak of this one: with 40 steps it would be seven times
as high, and nothing would be learnt."""
_MAX_EVERY = 1000
"""Most steps between validations, and between checkpoints, where the recipe does not say."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    initial: str = ""
    """What training begins with, weights, vocabulary and architecture: a checkpoint, a run, a
    bundle, or a model from elsewhere (a directory of Hugging Face or of Marian, an Argos package).
    Settings of ``model`` that a recipe leaves out are the model's own. Empty: random weights, and a
    vocabulary learnt from the text."""
    max_steps: int = 100_000
    """Updates of the weights, after which the run ends."""
    batch_tokens: int = 4096
    """Padded tokens of the longer side of a batch, over all processes together."""
    accumulate: int = 1
    """Batches whose gradients make one update."""
    label_smoothing: float = 0.1
    """Share of the probability that is spread over all tokens instead of the right one."""
    optimizer: Literal["adam", "muon"] = "adam"
    """``muon`` takes the matrices inside the layers, and leaves the rest to Adam."""
    schedule: Literal["inverse_sqrt", "constant", "cosine"] = "inverse_sqrt"
    """What follows the warm-up: the paper's 1/√step, no change, or a cosine to ``final_rate``."""
    learning_rate: float | None = None
    """Learning rate at the end of the warm-up. Unset: the paper's (width × warmup_steps)^-½; with a
    warm-up below 2,000 steps, as if it had 2,000, since the formula soars below."""
    warmup_steps: int | None = None
    """Steps over which the learning rate grows from 0. Unset: a tenth of ``max_steps``, at most
    4,000."""
    final_rate: float = 0.0
    """Where the cosine ends, as a share of ``learning_rate``."""
    adam_betas: tuple[float, float] = (0.9, 0.98)
    """How slowly Adam's means of the gradient and of its square change."""
    adam_epsilon: float = 1e-9
    """What Adam adds to the root of the mean square before it divides by it."""
    weight_decay: float = 0.0
    """Share of the learning rate by which weights shrink in each step."""
    clip_norm: float = 0.0
    """Longest gradient; longer ones are scaled down. 0: no limit."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "float32"
    """What matrix products are computed in. ``auto`` takes the faster of ``float32`` and
    ``bfloat16`` on the device of the run."""
    compile: bool = False
    """Compile the model with ``torch.compile``; needs a C++ compiler."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute. ``auto`` is CUDA where there is a GPU."""
    log_every: int = 10
    """Steps between lines of ``metrics.jsonl``."""

    def __post_init__(self) -> None:
        literals(self)
        for name in ("max_steps", "batch_tokens", "accumulate", "log_every"):
            at_least(1, name, getattr(self, name))
        if self.warmup_steps is not None:
            at_least(1, "warmup_steps", self.warmup_steps)
        probability("label_smoothing", self.label_smoothing)
        if self.learning_rate is not None:
            above(0, "learning_rate", self.learning_rate)
        for name in ("final_rate", "weight_decay", "clip_norm"):
            at_least(0, name, getattr(self, name))
        at_most(1, "final_rate", self.final_rate)
        above(0, "adam_epsilon", self.adam_epsilon)
        for beta in self.adam_betas:
            probability("adam_betas", beta)
        if self.schedule == "cosine" and self.warmup >= self.max_steps:
            raise ValueError(
                f"warmup_steps is {self.warmup}: a cosine schedule needs it below "
                f"max_steps, which is {self.max_steps}"
            )

    @property
    def warmup(self) -> int:
        """Steps of the warm-up, given or not."""
        if self.warmup_steps is not None:
            return self.warmup_steps
        return max(1, min(_MAX_WARMUP, self.max_steps // 10))

    def peak_rate(self, width: int) -> float:
        """Return the highest learning rate, given or not, for a model of this width."""
        if self.learning_rate is not None:
            return self.learning_rate
        return float((width * max(_MIN_WARMUP_OF_RATE, self.warmup)) ** -0.5)


@dataclass(frozen=True, kw_only=True)
class ValidationSettings:
    every: int | None = None
    """Steps between validations. Unset: a fifth of ``training.max_steps``, at most 1,000."""
    sentences: int = 500
    """Sentences to translate for BLEU and chrF, from the start of the validation text; 0: none."""
    beam: int = 1
    """Hypotheses that the search keeps at a time; 1 is greedy search."""
    metric: Literal["bleu", "chrf", "loss"] = "bleu"
    """What decides which checkpoint is best, and whether the mean of several is better."""
    patience: int = 0
    """Stop after this many validations without a better one; 0: never."""
    forgetting: float = 1.0
    """BLEU that a validation text may lose against the model of ``training.initial`` before a
    warning says so; 0: no warning."""

    def __post_init__(self) -> None:
        literals(self)
        if self.every is not None:
            at_least(1, "every", self.every)
        at_least(1, "beam", self.beam)
        at_least(0, "sentences", self.sentences)
        at_least(0, "patience", self.patience)
        at_least(0, "forgetting", self.forgetting)
        if self.metric != "loss" and self.sentences == 0:
            raise ValueError(f"metric is {self.metric!r}: it needs sentences above 0")


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    every: int | None = None
    """Steps between checkpoints; there is one after each validation too. Unset: a fifth of
    ``training.max_steps``, at most 1,000."""
    keep: int = 5
    """How many of the last and how many of the best to keep."""
    average: int = 1
    """How many checkpoints to average. The final model is their mean, or the best checkpoint where
    that does better on the validation text."""
    average_of: Literal["last", "best"] = "last"
    """Which checkpoints to average: the last, or those that did best in validation."""
    initial_share: float = 0.0
    """Share of the weights of ``training.initial`` in the final model, the rest being what was
    learnt since: the more, the less it forgets."""

    def __post_init__(self) -> None:
        literals(self)
        if self.every is not None:
            at_least(1, "every", self.every)
        for name in ("keep", "average"):
            at_least(1, name, getattr(self, name))
        probability("initial_share", self.initial_share)
        if self.average > self.keep:
            raise ValueError(
                f"average is {self.average}: it must be at most keep, which is {self.keep}"
            )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    seed: int = 1
    """Decides everything random."""
    data: DataSettings = field(default_factory=DataSettings)
    """The text: files, languages, filters."""
    toy: ToySettings | None = None
    """Make up the text instead of reading it from ``data``'s files."""
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    """The vocabulary that is learnt from the text."""
    model: TransformerSettings | RecurrentSettings = field(default_factory=TransformerSettings)
    """What is trained; its ``kind`` says which of the two it is."""
    training: TrainingSettings = field(default_factory=TrainingSettings)
    """How it is trained: steps, batches, learning rate, precision."""
    validation: ValidationSettings = field(default_factory=ValidationSettings)
    """How often it is measured, and on how much."""
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    """Which checkpoints are kept, and which of them are averaged."""

    def __post_init__(self) -> None:
        at_least(0, "seed", self.seed)
        at_most(2**32 - 1, "seed", self.seed)  # what SentencePiece takes
        if not self.toy and not (self.data.source_language and self.data.target_language):
            raise ValueError(
                "data.source_language and data.target_language are needed, as in 'en' and 'pt'"
            )
        if self.toy and (self.data.all_corpora or self.data.all_validation):
            raise ValueError("toy makes its own text: data must name no files")
        if not self.toy and not self.data.all_validation:
            for name, is_set in (
                ("validation.patience", self.validation.patience > 0),
                ("checkpoints.average_of = 'best'", self.checkpoints.average_of == "best"),
            ):
                if is_set:
                    raise ValueError(f"{name} needs validation text: set data.valid_source")
        if not self.toy and not self.data.all_corpora:
            raise ValueError(
                "data.train_source is empty: name the files to train on, in the recipe or with "
                "--set data.train_source=FILE; or list them under data.corpora"
            )
        if not self.training.initial and self.tokenizer.placeholders < MAX_PLACEHOLDERS:
            for corpus in self.data.all_corpora:
                if corpus.variants.placeholders:  # which draw from all of them
                    raise ValueError(
                        f"data.corpora: {corpus.name} has placeholders, which need "
                        f"tokenizer.placeholders = {MAX_PLACEHOLDERS}"
                    )
        if self.data.max_tokens > self.model.max_length:
            raise ValueError(
                f"data.max_tokens is {self.data.max_tokens}: it must be at most "
                f"model.max_length, which is {self.model.max_length}"
            )
        if self.training.batch_tokens < self.data.max_tokens:
            raise ValueError(
                f"training.batch_tokens is {self.training.batch_tokens}: it must be at least "
                f"data.max_tokens, which is {self.data.max_tokens}"
            )
        if self.checkpoints.initial_share and not self.training.initial:
            raise ValueError("checkpoints.initial_share needs a model: set training.initial")
        learns_vocabulary = not self.training.initial
        is_tied = self.model.tied_embeddings == "all"
        if learns_vocabulary and is_tied and not self.tokenizer.joint:
            raise ValueError(
                "model.tied_embeddings is 'all': that needs tokenizer.joint, "
                "with separate vocabularies it must be 'target' or 'none'"
            )
        if self.training.compile and self.model.kind != "transformer":
            raise ValueError(
                f"training.compile is true: a model of kind {self.model.kind!r} is not compiled"
            )

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @property
    def validate_every(self) -> int:
        """Steps between validations, given or not."""
        return self.validation.every or self._default_every

    @property
    def save_every(self) -> int:
        """Steps between checkpoints, given or not."""
        return self.checkpoints.every or self._default_every

    @property
    def _default_every(self) -> int:
        return max(1, min(_MAX_EVERY, self.training.max_steps // 5))

    def with_defaults(self) -> "Recipe":
        """Return the recipe with numbers in place of what follows from other settings."""
        return replace(
            self,
            training=replace(self.training, warmup_steps=self.training.warmup),
            validation=replace(self.validation, every=self.validate_every),
            checkpoints=replace(self.checkpoints, every=self.save_every),
        )

    def warnings(self) -> list[str]:
        """Return what is allowed and hardly meant, a line each."""
        training = self.training
        if training.warmup < training.max_steps or training.max_steps < 10:
            return []
        message = (
            f"training.warmup_steps is {training.warmup}, and training.max_steps only "
            f"{training.max_steps}: the learning rate will not get past its warm-up, and the model "
            "will learn little. Leave warmup_steps out to have a tenth of the steps"
        )
        return [message]


def load_recipe(
    path: Path,
    overrides: list[str],
    completed: Callable[[dict[str, Any]], dict[str, Any]] = lambda table: table,
) -> Recipe:
    """Read a recipe. Each override is ``section.key=value``, the value as TOML would have it.

    ``completed`` adds to the tables what they leave to the model that training begins with.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RecipeError(f"{path}: {error}") from None
    try:
        for text in overrides:
            override(table, text)
        return recipe_from_dict(completed(table))
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None


def recipe_from_dict(table: dict[str, Any]) -> Recipe:
    return build(Recipe, _expand_preset(table), "")


def _expand_preset(table: dict[str, Any]) -> dict[str, Any]:
    model = table.get("model")
    if not isinstance(model, dict) or "preset" not in model:
        return table
    name, kind = model["preset"], model.get("kind", "transformer")
    if kind != "transformer":
        raise RecipeError(f"model.preset: a setting of kind 'transformer', not of {kind!r}")
    if not isinstance(name, str) or name not in PRESETS:
        raise RecipeError(f"model.preset is {name!r}: it must be one of {', '.join(PRESETS)}")
    others = {key: value for key, value in model.items() if key != "preset"}
    return {**table, "model": {**PRESETS[name], **others}}
