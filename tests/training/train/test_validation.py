"""Validation in training: its loss and BLEU, and that it changes nothing."""

import pytest
import sacrebleu
import torch
import torch.nn.functional as F

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.batch import Batch, pad_sources
from dragoman_training.data.prepared import PreparedData
from dragoman_training.report.records import ValidationRecord
from dragoman_training.train.trainer import Trainer
from dragoman_training.train.validation import Validator
from dragoman_training.translate.search import default_limit, greedy_search
from support.trainers import (
    ALONE,
    CPU,
    changed,
    largest_difference,
    logits_and_labels,
    trained,
    weights_of,
)


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
