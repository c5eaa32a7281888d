"""Validation: loss on held-out text, and BLEU and chrF of its translations."""

import math
from collections.abc import Callable

import torch

from dragoman_training.batch import Batch
from dragoman_training.batching import epoch_batches
from dragoman_training.distributed import World
from dragoman_training.evaluation import measure, translate
from dragoman_training.objective import Objective
from dragoman_training.prepare import PreparedData
from dragoman_training.recipe import Recipe
from dragoman_training.records import ValidationRecord
from dragoman_training.token_store import TokenStore

_SAMPLES = 3


class Validator:
    """Measures a model on the validation text; the processes share the work."""

    def __init__(self, recipe: Recipe, data: PreparedData, store: TokenStore, world: World) -> None:
        self._settings = recipe.validation
        # The pairs that the model takes may be longer than those it is trained on.
        self._batch_tokens = max(recipe.training.batch_tokens, recipe.model.max_length)
        self._target_language = recipe.data.target_language
        self._tokenized = recipe.data.tokenized
        self._data = data
        self._store = store
        self._world = world

    def __call__(
        self, objective: Objective, step: int, watch: Callable[[int, int], None]
    ) -> ValidationRecord:
        objective.eval()
        loss = self._loss(objective)
        record = ValidationRecord(step=step, loss=loss, perplexity=math.exp(min(loss, 700.0)))
        if not self._settings.sentences:
            return record
        sources = self._data.valid_sources[: self._settings.sentences]
        references = self._data.valid_targets[: self._settings.sentences]
        mine = self._world.share(sources)
        translations = self._world.gather_shares(
            [
                translation.text
                for translation in translate(
                    objective.model,
                    self._data.tokenizers,
                    mine,
                    beam=self._settings.beam,
                    watch=lambda done: watch(done, len(mine)),
                )
            ]
        )
        quality = measure(
            translations, references, self._target_language, tokenized=self._tokenized
        )
        samples = zip(sources, references, translations, strict=True)
        return ValidationRecord(
            step=step,
            loss=record.loss,
            perplexity=record.perplexity,
            bleu=quality.bleu,
            chrf=quality.chrf,
            exact=quality.exact,
            bleu_signature=quality.bleu_signature,
            chrf_signature=quality.chrf_signature,
            samples=tuple(samples)[:_SAMPLES],
        )

    @torch.no_grad()
    def _loss(self, objective: Objective) -> float:
        sums = torch.zeros(2, dtype=torch.float64)
        batches = list(epoch_batches(self._store, 0, tokens=self._batch_tokens, seed=0))
        for indices in self._world.share(batches):
            batch = Batch.of([self._store[int(i)] for i in indices], self._world.device)
            nll = objective(batch).nll
            sums += torch.tensor([float(nll), int(batch.target_lengths_B.sum())])
        # Gloo adds up what is on the CPU, NCCL what is on the device.
        total, tokens = self._world.sum(sums.to(self._world.device)).tolist()
        return float(total / tokens)
