"""The learning rate of each step: section 5.3 of the paper, a constant, or a cosine."""

import math

from dragoman_training.config.recipe import TrainingSettings


def learning_rate(step: int, settings: TrainingSettings, width: int) -> float:
    """The rate of update number ``step``, counted from 1.

    It grows linearly over the warm-up to its peak. The paper's schedule then falls with 1/√step;
    with its own peak, and a warm-up that is not short, it is
    width^-½ · min(step^-½, step · warmup_steps^-1½).
    """
    warmup, peak = settings.warmup, settings.peak_rate(width)
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "inverse_sqrt":
        return peak * math.sqrt(warmup / step)
    if settings.schedule == "constant":
        return peak
    progress = min(1.0, (step - warmup) / (settings.max_steps - warmup))
    share = (1 + math.cos(math.pi * progress)) / 2
    return peak * (settings.final_rate + (1 - settings.final_rate) * share)
