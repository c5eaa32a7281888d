"""Each setting of training does what it says, against the formulas written out with PyTorch."""

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.data.batch import Batch, pad_sources
from dragoman_training.data.batching import Position, batches_from
from dragoman_training.data.prepare import prepare
from dragoman_training.data.prepared import PreparedData, load_prepared
from dragoman_training.errors import DivergedError
from dragoman_training.models.attention import ScaledDotProductAttention
from dragoman_training.models.dropout import Dropout
from dragoman_training.models.layers import FeedForward, Residual
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Embedding, Transformer
from dragoman_training.report.records import ValidationRecord
from dragoman_training.train import trainer as trainer_module
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.train.distributed import World
from dragoman_training.train.schedule import learning_rate
from dragoman_training.train.trainer import Trainer
from dragoman_training.train.validation import Validator
from dragoman_training.translate.search import default_limit, greedy_search
from support.models import tiny_model

CPU = torch.device("cpu")
ALONE = World(0, 1, CPU)

Weights = dict[str, Tensor]


def write_text(path: Path, pairs: int, seed: int) -> tuple[str, str]:
    """A file of each side; a target has more tokens than its source, by a number that varies."""
    rng = random.Random(seed)
    words = [x + y for x in ("ca", "li", "sol", "gue") for y in ("sa", "vro", "mão", "te")]
    sentences = [rng.choices(words, k=rng.randint(1, 5)) for _ in range(pairs)]
    sides = path.with_suffix(".source"), path.with_suffix(".target")
    sides[0].write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    sides[1].write_text(
        "".join(" ".join(f"o {w}" if "a" in w else w for w in s) + "\n" for s in sentences)
    )
    return str(sides[0]), str(sides[1])


@pytest.fixture(scope="module")
def data_settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("text")
    train, valid = (
        write_text(directory / name, pairs, seed)
        for name, pairs, seed in (("train", 90, 1), ("valid", 30, 2))
    )
    return {
        "source_language": "en",
        "target_language": "pt",
        "train_source": [train[0]],
        "train_target": [train[1]],
        "valid_source": [valid[0]],
        "valid_target": [valid[1]],
        "max_tokens": 40,
    }


@pytest.fixture(scope="module")
def recipe(data_settings: dict[str, Any]) -> Recipe:
    return recipe_from_dict(
        {
            "seed": 5,
            "data": data_settings,
            "tokenizer": {"kind": "bpe", "vocabulary": 300},
            "model": {
                "width": 16,
                "heads": 2,
                "feed_forward": 32,
                "encoder_layers": 1,
                "decoder_layers": 1,
                "dropout": 0.0,
                "max_length": 48,
            },
            "training": {
                "batch_tokens": 100,
                "label_smoothing": 0.2,
                "learning_rate": 0.01,
                "warmup_steps": 2,
                "adam_betas": [0.8, 0.9],
                "adam_epsilon": 1e-3,
                "weight_decay": 0.1,
                "clip_norm": 0.05,
                "log_every": 1,
            },
        }
    )


@pytest.fixture(scope="module")
def data(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    directory = tmp_path_factory.mktemp("prepared") / "data"
    prepare(recipe, directory, lambda stage, done, total: None)
    return load_prepared(directory)


def changed(recipe: Recipe, **sections: dict[str, Any]) -> Recipe:
    """The recipe with some settings of some sections replaced."""
    return replace(
        recipe,
        **{name: replace(getattr(recipe, name), **new) for name, new in sections.items()},
    )


def weights_of(model: nn.Module) -> Weights:
    """A copy, which further training leaves alone."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def largest_difference(one: Weights, other: Weights) -> float:
    return max((one[name] - other[name]).abs().max().item() for name in one)


def trained(recipe: Recipe, data: PreparedData, updates: int) -> Trainer:
    trainer = Trainer(recipe, data, ALONE)
    for _ in range(updates):
        trainer.update(stop=False)
    return trainer


def logits_and_labels(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Of every real target position: [N, V] and [N]."""
    logits_BTV = model(
        batch.source_BS, batch.source_lengths_B, batch.input_BT, batch.target_lengths_B
    )
    positions_T = torch.arange(batch.label_BT.shape[1])
    real_BT = positions_T < batch.target_lengths_B[:, None]
    return logits_BTV[real_BT], batch.label_BT[real_BT]


class ByHand:
    """The trainer's updates in plain PyTorch, with no part of it but the model and the batches."""

    def __init__(self, recipe: Recipe, data: PreparedData, model: nn.Module) -> None:
        self.recipe = recipe
        self.settings = settings = recipe.training
        self.model = copy.deepcopy(model).train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            betas=settings.adam_betas,
            eps=settings.adam_epsilon,
            weight_decay=settings.weight_decay,
        )
        self.batches: Iterator[Batch] = (
            Batch.of([data.train[int(i)] for i in indices], CPU)
            for indices, _ in batches_from(
                data.train, Position(), tokens=settings.batch_tokens, seed=recipe.seed
            )
        )
        self.step = 0

    def update(self) -> tuple[float, float, float]:
        """Returns the loss, the perplexity and the norm of the gradient before it is clipped."""
        settings = self.settings
        batches = list(islice(self.batches, settings.accumulate))
        tokens = [int(batch.target_lengths_B.sum()) for batch in batches]
        assert len(set(tokens)) == len(tokens)  # or a mean of means would be the mean of all
        smoothed = torch.zeros(())
        nll = 0.0
        for batch in batches:
            logits_NV, label_N = logits_and_labels(self.model, batch)
            smoothed = smoothed + F.cross_entropy(
                logits_NV, label_N, label_smoothing=settings.label_smoothing, reduction="sum"
            )
            nll += F.cross_entropy(logits_NV, label_N, reduction="sum").item()
        loss = smoothed / sum(tokens)
        self.optimizer.zero_grad()
        loss.backward()
        limit = settings.clip_norm or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit).item()
        self.step += 1
        rate = learning_rate(self.step, settings, self.recipe.model.width)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        return loss.item(), torch.tensor(nll / sum(tokens)).exp().item(), norm


@pytest.mark.parametrize("updates", [1, 3])
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("clip_norm", [0.05, 0.0])
def test_updates_are_those_of_the_formulas(
    recipe: Recipe, data: PreparedData, updates: int, accumulate: int, clip_norm: float
) -> None:
    recipe = changed(recipe, training={"accumulate": accumulate, "clip_norm": clip_norm})
    trainer = Trainer(recipe, data, ALONE)
    by_hand = ByHand(recipe, data, trainer.model)
    for _ in range(updates):
        record, _ = trainer.update(stop=False)
        loss, perplexity, norm = by_hand.update()
        assert norm > 10 * clip_norm
        assert record is not None
        assert record.loss == pytest.approx(loss, rel=1e-5)
        assert record.perplexity == pytest.approx(perplexity, rel=1e-4)
        assert record.gradient_norm == pytest.approx(norm, rel=1e-4)
    expected = weights_of(by_hand.model)
    torch.testing.assert_close(weights_of(trainer.model), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "other",
    [
        {"label_smoothing": 0.0},
        {"clip_norm": 0.0},
        {"clip_norm": 0.1},
        {"weight_decay": 0.0},
        {"adam_betas": (0.9, 0.9)},
        {"adam_betas": (0.8, 0.98)},
        {"adam_epsilon": 1e-4},
        {"learning_rate": 0.011},
        {"accumulate": 2},
    ],
    ids=str,
)
def test_every_setting_of_the_updates_matters(
    recipe: Recipe, data: PreparedData, other: dict[str, Any]
) -> None:
    """By much more than the tolerance above, so the formulas hold for no other values."""
    one = weights_of(trained(recipe, data, 3).model)
    two = weights_of(trained(changed(recipe, training=other), data, 3).model)
    assert largest_difference(one, two) > 1e-4


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine"])
def test_every_update_has_the_rate_of_the_schedule(
    recipe: Recipe, data: PreparedData, schedule: str
) -> None:
    recipe = changed(recipe, training={"schedule": schedule, "max_steps": 8, "final_rate": 0.1})
    trainer = Trainer(recipe, data, ALONE)
    rates = []
    for step in range(1, 6):
        record, _ = trainer.update(stop=False)
        rates.append(learning_rate(step, recipe.training, recipe.model.width))
        (adam,) = trainer.optimizers.all
        assert [group["lr"] for group in adam.param_groups] == rates[-1:]
        assert record is not None
        assert record.learning_rate == rates[-1]
    assert len(set(rates)) == 5


def dropouts_of(model: Transformer, kind: type[nn.Module]) -> list[Dropout]:
    """The dropouts of all parts of one kind."""
    parts = [part for part in model.modules() if isinstance(part, kind)]
    return [child for part in parts for child in part.children() if isinstance(child, Dropout)]


# Two layers on each side: two embeddings, five residual connections a pair of layers, and so on.
PLACES: dict[type[nn.Module], tuple[str, int]] = {
    Embedding: ("dropout", 2),
    Residual: ("dropout", 10),
    ScaledDotProductAttention: ("attention_dropout", 6),
    FeedForward: ("activation_dropout", 4),
}


def move_in_training(model: Transformer) -> float:
    """How far the scores of training are from those of use; rounding alone makes 1e-6."""
    torch.manual_seed(3)
    source_BS, target_BT = torch.randint(4, 50, (3, 6)), torch.randint(4, 50, (3, 5))
    arguments = (source_BS, torch.tensor([6, 4, 2]), target_BT)
    with torch.no_grad():
        return (model.train()(*arguments) - model.eval()(*arguments)).abs().max().item()


@pytest.mark.parametrize("setting", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_setting_works_alone_and_in_training_only(setting: str) -> None:
    zeros: dict[str, Any] = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    assert move_in_training(tiny_model(**zeros)) == 0
    assert move_in_training(tiny_model(**{**zeros, setting: 0.5})) > 1e-3


@pytest.mark.parametrize("kind", PLACES)
def test_every_place_of_a_dropout_has_its_probability(kind: type[nn.Module]) -> None:
    setting, count = PLACES[kind]
    probabilities: dict[str, Any] = {
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "activation_dropout": 0.3,
    }
    dropouts = dropouts_of(tiny_model(**probabilities), kind)
    assert [dropout.probability for dropout in dropouts] == [probabilities[setting]] * count


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", PLACES)
def test_every_dropout_is_applied(kind: type[nn.Module], norm: str) -> None:
    """Each is turned on with all others off: having a probability is not yet dropping."""
    model = tiny_model(norm=norm)
    for dropout in dropouts_of(model, kind):
        dropout.probability = 0.5
        assert move_in_training(model) > 1e-3
        dropout.probability = 0.0
    assert move_in_training(model) == 0


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_residual_connection_drops_of_the_sublayer_alone(norm: Any) -> None:
    residual = Residual(TransformerSettings(width=16, heads=2, dropout=0.5, norm=norm))
    x_ND = torch.randn(5, 16)
    nothing: Callable[[Tensor], Tensor] = torch.zeros_like
    assert torch.equal(residual.train()(x_ND, nothing), residual.eval()(x_ND, nothing))


@pytest.fixture(scope="module")
def learner(recipe: Recipe, data: PreparedData) -> Trainer:
    """Has learnt enough to get some translations right and others not."""
    return trained(
        changed(
            recipe,
            model={"dropout": 0.05},
            training={
                "batch_tokens": 400,
                "label_smoothing": 0.3,
                "warmup_steps": 20,
                "adam_epsilon": 1e-9,
                "weight_decay": 0.0,
                "clip_norm": 0.0,
            },
            validation={"sentences": 12},
        ),
        data,
        updates=100,
    )


def validate(trainer: Trainer, recipe: Recipe) -> ValidationRecord:
    validator = Validator(recipe, trainer.data, ALONE)
    return validator(trainer.objective, trainer.progress.step, lambda done, total: None)


@pytest.mark.parametrize("batch_tokens", [40, 4000])
def test_validation_loss_is_plain_cross_entropy_per_target_token(
    learner: Trainer, batch_tokens: int
) -> None:
    (valid,) = learner.data.valid
    store = valid.store
    smoothed = nll = 0.0
    tokens = 0
    model = learner.model.eval()
    with torch.no_grad():
        for pair in (store[i] for i in range(len(store))):
            logits_NV, label_N = logits_and_labels(model, Batch.of([pair], CPU))
            nll += F.cross_entropy(logits_NV, label_N, reduction="sum").item()
            smoothed += F.cross_entropy(
                logits_NV, label_N, reduction="sum", label_smoothing=0.3
            ).item()
            tokens += len(pair.target) + 1
    assert abs(smoothed - nll) / tokens > 0.1
    learner.objective.train()
    recipe = changed(learner.recipe, training={"batch_tokens": batch_tokens})
    record = validate(learner, recipe)
    assert record.loss == pytest.approx(nll / tokens, rel=1e-5)
    assert record.perplexity == pytest.approx(torch.tensor(nll / tokens).exp().item(), rel=1e-4)


def test_validation_bleu_is_that_of_greedy_translations_of_the_first_sentences(
    learner: Trainer,
) -> None:
    data = learner.data
    model = learner.model.eval()
    translations = []
    (valid,) = data.valid
    for source in data.tokenizers.source.encode_all(valid.sources):
        limits = [default_limit(len(source), model.settings.max_length)]
        (found,) = greedy_search(model, *pad_sources([source], CPU), limits)
        translations.append(data.tokenizers.target.decode(found.ids))
    references = valid.targets
    bleu = sacrebleu.corpus_bleu(translations[:12], [references[:12]]).score
    assert 1 < bleu < 99
    assert bleu != sacrebleu.corpus_bleu(translations, [references]).score
    learner.objective.train()
    record = validate(learner, learner.recipe)
    assert record.bleu == bleu
    assert record.chrf == sacrebleu.corpus_chrf(translations[:12], [references[:12]]).score
    assert record.samples == tuple(
        zip(valid.sources[:3], references[:3], translations[:3], strict=True)
    )


def test_a_validation_between_updates_changes_nothing(recipe: Recipe, data: PreparedData) -> None:
    recipe = changed(recipe, model={"dropout": 0.1}, validation={"sentences": 2})
    one, other = (trained(recipe, data, 1) for _ in range(2))
    validate(other, recipe)
    for trainer in (one, other):
        trainer.update(stop=False)
    assert largest_difference(weights_of(one.model), weights_of(other.model)) == 0


def resumed(trainer: Trainer, path: Path) -> Trainer:
    """A new trainer that goes on from a checkpoint of this one, by way of the disk."""
    trainer.snapshot({}).save(path)
    fresh = Trainer(trainer.recipe, trainer.data, ALONE)
    fresh.restore(Checkpoint.load(path))
    return fresh


def test_a_restored_trainer_goes_on_bit_for_bit(
    recipe: Recipe, data: PreparedData, tmp_path: Path
) -> None:
    recipe = changed(recipe, model={"dropout": 0.1, "attention_dropout": 0.1})
    first = trained(recipe, data, 3)
    before = weights_of(first.model)
    second = resumed(first, tmp_path / "checkpoint")
    assert largest_difference(before, weights_of(second.model)) == 0
    torch.manual_seed(99)  # what others draw in between does not matter
    records = [trainer.update(stop=False)[0] for trainer in (second, first)]
    assert largest_difference(weights_of(first.model), weights_of(second.model)) == 0
    assert largest_difference(before, weights_of(first.model)) > 1e-4
    assert records[0] is not None
    assert records[1] is not None
    assert (records[0].step, records[0].loss) == (records[1].step, records[1].loss)
    assert first.progress.position == second.progress.position


def test_a_loss_that_is_no_number_stops_before_the_weights_change(
    recipe: Recipe, data: PreparedData
) -> None:
    trainer = trained(recipe, data, 1)
    with torch.no_grad():
        trainer.model.get_parameter("encoder.0.feed_forward.widen.bias")[0] = torch.nan
    before = weights_of(trainer.model)
    with pytest.raises(DivergedError, match="the loss is no longer a number at step 2"):
        trainer.update(stop=False)
    after = weights_of(trainer.model)
    torch.testing.assert_close(after, before, atol=0, rtol=0, equal_nan=True)
    assert trainer.progress.step == 1


class Poison:
    """Turns the gradient of one parameter into no number, while it is on."""

    def __init__(self, model: nn.Module) -> None:
        self.on = True
        parameter = model.get_parameter("decoder.0.feed_forward.widen.bias")
        parameter.register_hook(lambda grad: grad * torch.nan if self.on else grad)


def test_a_gradient_that_is_no_number_stops_before_the_weights_change(
    recipe: Recipe, data: PreparedData
) -> None:
    trainer = trained(recipe, data, 1)
    Poison(trainer.model)
    before = weights_of(trainer.model)
    with pytest.raises(DivergedError, match="the gradient is no longer a number at step 2"):
        trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) == 0


def use_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes can't ask for it on a CPU, where it is slow; but a CPU computes it."""
    monkeypatch.setattr(trainer_module, "autocast_dtype", lambda precision, device: torch.float16)


def test_float16_updates_follow_those_of_float32(
    recipe: Recipe, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = Trainer(recipe, data, ALONE)
    use_float16(monkeypatch)
    half = Trainer(recipe, data, ALONE)
    before = weights_of(half.model)
    for _ in range(2):
        records = [trainer.update(stop=False)[0] for trainer in (half, single)]
        assert records[0] is not None
        assert records[1] is not None
        assert records[0].loss != records[1].loss
        assert records[0].loss == pytest.approx(records[1].loss, rel=1e-2)
        assert records[0].gradient_norm == pytest.approx(records[1].gradient_norm, rel=1e-2)
    assert largest_difference(weights_of(half.model), before) > 5e-3
    assert largest_difference(weights_of(half.model), weights_of(single.model)) < 1e-3


def test_float16_skips_steps_without_a_gradient_but_not_forever(
    recipe: Recipe, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_float16(monkeypatch)
    trainer = Trainer(recipe, data, ALONE)
    poison = Poison(trainer.model)
    before = weights_of(trainer.model)
    for _ in range(trainer_module.MAX_SKIPPED):
        trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) == 0
    poison.on = False
    trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) > 0
    poison.on = True
    before = weights_of(trainer.model)
    for _ in range(trainer_module.MAX_SKIPPED):  # only those in a row count
        trainer.update(stop=False)
    with pytest.raises(DivergedError):
        trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) == 0


def test_the_loss_scale_is_kept_in_a_checkpoint(
    recipe: Recipe, data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_float16(monkeypatch)
    trainer = Trainer(recipe, data, ALONE)
    start = trainer.snapshot({}).state
    poison = Poison(trainer.model)
    trainer.update(stop=False)
    poison.on = False
    trainer.update(stop=False)
    lowered = resumed(trainer, tmp_path / "checkpoint").snapshot({}).state
    assert start is not None
    assert lowered is not None
    assert lowered["scaler"]["scale"] == start["scaler"]["scale"] / 2


@pytest.mark.parametrize(("sample", "vocabulary"), [(40, 320), (59, 330)])
def test_a_tokenizer_learns_from_a_sample_of_the_whole_corpus(
    tmp_path: Path, sample: int, vocabulary: int
) -> None:
    """Every pair has a letter of its own, and a letter that was seen gets an entry."""
    letters = [chr(0x4E00 + n) for n in range(120)]
    files = tmp_path / "text.source", tmp_path / "text.target"
    for file in files:
        file.write_text("".join(f"casa {letter} mar\n" for letter in letters))
    recipe = recipe_from_dict(
        {
            "data": {
                "source_language": "en",
                "target_language": "pt",
                "train_source": [str(files[0])],
                "train_target": [str(files[1])],
            },
            "tokenizer": {"kind": "bpe", "vocabulary": vocabulary, "sample": sample},
        }
    )
    prepare(recipe, tmp_path / "data", lambda stage, done, total: None)
    tokenizer = load_prepared(tmp_path / "data").tokenizers.source
    seen = [
        n for n, x in enumerate(letters) if tokenizer.pieces(tokenizer.encode(x))[-1].endswith(x)
    ]
    assert 0.6 * sample < len(seen) < 1.4 * sample
    assert seen[0] < 20
    assert seen[-1] > 100  # of 120
    assert max(after - before for before, after in pairwise(seen)) < 20
