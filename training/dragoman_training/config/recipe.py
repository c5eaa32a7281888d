"""A recipe: all that defines a training run, as one TOML file.

Each part owns its settings and checks them; here they are only put together.
"""

import dataclasses
import tomllib
from dataclasses import dataclass, field
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


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    initial: str = ""
    """A checkpoint, a run or an exported bundle, whose weights and vocabulary training begins with;
    the sizes of the model must be the same. Empty: random weights, and a vocabulary learnt from the
    text."""
    max_steps: int = 100_000
    batch_tokens: int = 4096
    """Padded tokens of the longer side of a batch, over all processes together."""
    accumulate: int = 1
    """Batches whose gradients make one update."""
    label_smoothing: float = 0.1
    optimizer: Literal["adam", "muon"] = "adam"
    """``muon`` takes the matrices inside the layers, and leaves the rest to Adam."""
    schedule: Literal["inverse_sqrt", "constant", "cosine"] = "inverse_sqrt"
    """What follows the warm-up: the paper's 1/√step, no change, or a cosine to ``final_rate``."""
    learning_rate: float | None = None
    """At the end of the warm-up. Unset: the paper's (width × warmup_steps)^-½."""
    warmup_steps: int = 4000
    final_rate: float = 0.0
    """Where the cosine ends, as a share of ``learning_rate``."""
    adam_betas: tuple[float, float] = (0.9, 0.98)
    adam_epsilon: float = 1e-9
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    """Longest gradient; longer ones are scaled down. 0: no limit."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "float32"
    """What matrix products are computed in. ``auto`` takes the faster of ``float32`` and
    ``bfloat16`` on the device of the run."""
    compile: bool = False
    """Compile the model with ``torch.compile``; needs a C++ compiler."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    log_every: int = 10

    def __post_init__(self) -> None:
        literals(self)
        for name in ("max_steps", "batch_tokens", "accumulate", "warmup_steps", "log_every"):
            at_least(1, name, getattr(self, name))
        probability("label_smoothing", self.label_smoothing)
        if self.learning_rate is not None:
            above(0, "learning_rate", self.learning_rate)
        for name in ("final_rate", "weight_decay", "clip_norm"):
            at_least(0, name, getattr(self, name))
        at_most(1, "final_rate", self.final_rate)
        above(0, "adam_epsilon", self.adam_epsilon)
        for beta in self.adam_betas:
            probability("adam_betas", beta)
        if self.schedule == "cosine" and self.warmup_steps >= self.max_steps:
            raise ValueError(
                f"warmup_steps is {self.warmup_steps}: a cosine schedule needs it below "
                f"max_steps, which is {self.max_steps}"
            )


@dataclass(frozen=True, kw_only=True)
class ValidationSettings:
    every: int = 1000
    """Steps between validations."""
    sentences: int = 500
    """Sentences to translate for BLEU and chrF, from the start of the validation text; 0: none."""
    beam: int = 1
    metric: Literal["bleu", "chrf", "loss"] = "bleu"
    """What decides which checkpoint is best."""
    patience: int = 0
    """Stop after this many validations without a better one; 0: never."""

    def __post_init__(self) -> None:
        literals(self)
        at_least(1, "every", self.every)
        at_least(1, "beam", self.beam)
        at_least(0, "sentences", self.sentences)
        at_least(0, "patience", self.patience)
        if self.metric != "loss" and self.sentences == 0:
            raise ValueError(f"metric is {self.metric!r}: it needs sentences above 0")


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    every: int = 1000
    """Steps between checkpoints; there is one after each validation too."""
    keep: int = 5
    """How many of the last and how many of the best to keep."""
    average: int = 1
    """How many checkpoints make the final model, averaged."""
    average_of: Literal["last", "best"] = "last"

    def __post_init__(self) -> None:
        literals(self)
        for name in ("every", "keep", "average"):
            at_least(1, name, getattr(self, name))
        if self.average > self.keep:
            raise ValueError(
                f"average is {self.average}: it must be at most keep, which is {self.keep}"
            )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    seed: int = 1
    data: DataSettings = field(default_factory=DataSettings)
    toy: ToySettings | None = None
    """Make up the text instead of reading it from ``data``'s files."""
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    model: TransformerSettings | RecurrentSettings = field(default_factory=TransformerSettings)
    """Which of the two, its ``kind`` says."""
    training: TrainingSettings = field(default_factory=TrainingSettings)
    validation: ValidationSettings = field(default_factory=ValidationSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)

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
        if self.model.tied_embeddings == "all" and not self.tokenizer.joint:
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


def load_recipe(path: Path, overrides: list[str]) -> Recipe:
    """Read a recipe. Each override is ``section.key=value``, the value as TOML would have it."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RecipeError(f"{path}: {error}") from None
    try:
        for text in overrides:
            override(table, text)
        return recipe_from_dict(table)
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
