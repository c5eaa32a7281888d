"""Which checkpoints of a run are kept, and which of them make its final model."""

from collections.abc import Callable

from dragoman_training.config.recipe import Recipe
from dragoman_training.train.checkpoint import CheckpointStore
from dragoman_training.train.trainer import Trainer


class Retention:
    """The rules of one run. A run that was stopped keeps what one that was not stopped keeps."""

    def __init__(self, recipe: Recipe, store: CheckpointStore, trainer: Trainer) -> None:
        self._recipe = recipe
        self._settings = recipe.checkpoints
        self._store = store
        self._trainer = trainer

    def is_scheduled(self, step: int) -> bool:
        """Whether any run of this recipe has a checkpoint there, however often it was stopped."""
        return (
            step % self._recipe.save_every == 0
            or step == self._recipe.training.max_steps
            or step in self._trainer.progress.goodness
        )

    def worth_keeping(self) -> set[int]:
        """Return the last and the best on schedule, and the newest, which may be a stop's."""
        keep = self._settings.keep
        return {*self._scheduled()[-keep:], *self._best(), self._store.steps()[-1]}

    def final_candidates(self, is_whole: Callable[[int], bool]) -> list[list[int]]:
        """Return the steps of each model that may become the final one, of those that are whole.

        The first is the mean that the recipe asks for, the second the best checkpoint, where that
        is another model. None where no checkpoint is whole.
        """
        count = self._settings.average
        best = [step for step in self._best() if is_whole(step)]
        if self._settings.average_of == "last":
            mean = [step for step in self._scheduled() if is_whole(step)][-count:]
        else:
            mean = sorted(best[:count])
        candidates = [mean, best[:1]]
        return [steps for steps in candidates if steps][: 1 if mean == best[:1] else 2]

    def _scheduled(self) -> list[int]:
        return [step for step in self._store.steps() if self.is_scheduled(step)]

    def _best(self) -> list[int]:
        """Return the best steps that are saved, the best first."""
        goodness = self._trainer.progress.goodness
        saved = set(self._store.steps())
        ranked = sorted((s for s in goodness if s in saved), key=lambda s: (-goodness[s], -s))
        return ranked[: self._settings.keep]
