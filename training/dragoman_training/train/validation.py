"""Validation: loss on held-out text, and BLEU and chrF of its translations."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import torch

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.batch import Batch
from dragoman_training.data.batching import epoch_batches
from dragoman_training.data.prepared import PreparedData
from dragoman_training.data.token_store import TokenStore
from dragoman_training.report.records import ValidationRecord
from dragoman_training.train.distributed import World
from dragoman_training.train.objective import Objective
from dragoman_training.translate.evaluation import Quality, measure, translate

_SAMPLES = 3


class Validator:
    """Measures a model on the validation texts; the processes share the work."""

    def __init__(self, recipe: Recipe, data: PreparedData, world: World) -> None:
        self._settings = recipe.validation
        # The pairs that the model takes may be longer than those it is trained on.
        self._batch_tokens = max(recipe.training.batch_tokens, recipe.model.max_length)
        self._target_language = recipe.data.target_language
        self._tokenized = recipe.data.tokenized
        self._data = data
        self._world = world

    def __call__(
        self, objective: Objective, step: int, watch: Callable[[int, int], None]
    ) -> ValidationRecord:
        """Measure each text by itself. The loss of all is that of their tokens together, and
        their BLEU, chrF and exact matches are means over the texts."""
        objective.eval()
        texts = self._data.valid
        sums = {text.name: self._loss(objective, text.store) for text in texts}
        total, tokens = (sum(column) for column in zip(*sums.values(), strict=True))
        loss = total / tokens
        by_text = {name: {"loss": nll / count} for name, (nll, count) in sums.items()}
        record = ValidationRecord(
            step=step,
            loss=loss,
            perplexity=math.exp(min(loss, 700.0)),
            by_text=by_text if len(texts) > 1 else {},
        )
        if not self._settings.sentences:
            return record
        wanted = sum(min(len(text.sources), self._settings.sentences) for text in texts)
        done = 0
        qualities: list[Quality] = []
        samples: list[tuple[str, str, str]] = []
        for text in texts:
            sources = text.sources[: self._settings.sentences]
            references = text.targets[: self._settings.sentences]
            translations = self._translate(
                objective, sources, partial(_report, watch, done, wanted)
            )
            done += len(sources)
            quality = measure(
                translations, references, self._target_language, tokenized=self._tokenized
            )
            by_text[text.name] |= {"bleu": quality.bleu, "chrf": quality.chrf}
            qualities.append(quality)
            samples += list(zip(sources, references, translations, strict=True))[
                : -(-_SAMPLES // len(texts))
            ]
        return replace(
            record,
            bleu=_mean(quality.bleu for quality in qualities),
            chrf=_mean(quality.chrf for quality in qualities),
            exact=_mean(quality.exact for quality in qualities),
            bleu_signature=qualities[0].bleu_signature,
            chrf_signature=qualities[0].chrf_signature,
            samples=tuple(samples),
        )

    def _translate(
        self, objective: Objective, sources: list[str], watch: Callable[[int], None]
    ) -> list[str]:
        size = self._world.size
        return self._world.gather_shares(
            [
                translation.text
                for translation in translate(
                    objective.model,
                    self._data.tokenizers,
                    self._world.share(sources),
                    beam=self._settings.beam,
                    watch=lambda done: watch(min(done * size, len(sources))),
                )
            ]
        )

    @torch.no_grad()
    def _loss(self, objective: Objective, store: TokenStore) -> tuple[float, float]:
        """Return the summed negative log-likelihood, and the tokens that it is of."""
        sums = torch.zeros(2, dtype=torch.float64)
        batches = list(epoch_batches(store, 0, tokens=self._batch_tokens, seed=0))
        for indices in self._world.share(batches):
            pairs = [store[int(i)] for i in indices]
            batch = Batch.of(pairs, self._world.device, self._data.tokenizers.ends)
            nll = objective(batch).nll
            sums += torch.tensor([float(nll), int(batch.target_lengths_B.sum())])
        # Gloo adds up what is on the CPU, NCCL what is on the device.
        total, tokens = self._world.sum(sums.to(self._world.device)).tolist()
        return float(total), float(tokens)


def _report(watch: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    watch(before + done, total)


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)
