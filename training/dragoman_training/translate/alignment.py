"""Where the decoder looked: the cross-attention of one sentence.

Shapes: T target tokens, S source tokens, H heads.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from dragoman_training.data.batch import Batch
from dragoman_training.data.token_store import TokenPair
from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.errors import CheckpointError, CorpusError
from dragoman_training.models.attention import record_attention
from dragoman_training.models.base import AnyModel
from dragoman_training.models.layout import Layout
from dragoman_training.translate.evaluation import translate


@dataclass(frozen=True, eq=False)
class CrossAttention:
    translation: str
    source: list[str]
    """Pieces of the source, its end token included; columns of the weights."""
    target: list[str]
    """Pieces of the translation; rows of the weights, each of which sums to 1."""
    weights_TS: npt.NDArray[np.float32]


@torch.inference_mode()
def cross_attention(
    model: AnyModel,
    tokenizers: TokenizerPair,
    text: str,
    translation: str | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    beam: int = 1,
) -> CrossAttention:
    """The weights with which each target token was predicted; layers and heads count from 1.

    Without a translation, the model's own is used.
    """
    attentions = model.cross_attentions()
    if not attentions:
        raise CheckpointError(
            "the model has no attention to show: its decoder sees the source as one vector"
        )
    _check_number("layer", layer, len(attentions))
    longest = model.settings.max_length
    source_ids = tokenizers.source.encode(text)
    if not source_ids:
        raise CorpusError("the sentence is empty")
    if translation is None:
        (best,) = translate(model, tokenizers, [text], beam=beam)
        translation, target_ids = best.text, list(best.hypothesis.ids)
    else:
        target_ids = tokenizers.target.encode(translation)
    ends = tokenizers.ends
    around = len(ends.before), len(ends.start)
    if max(around[0] + len(source_ids), around[1] + len(target_ids)) >= longest:
        raise CorpusError(f"the sentence is too long: the model takes {longest} tokens")
    model.eval()
    pair = TokenPair(np.array(source_ids), np.array(target_ids, np.int64))
    batch = Batch.of([pair], next(model.parameters()).device, ends)
    memory = model.encode(batch.source_BS, batch.source_lengths_B)
    layout = Layout.of(batch.target_lengths_B)
    with record_attention(model) as recorded:
        model.decode(layout.pack(batch.input_BT), layout, memory)
    # Teacher forcing is one call for all positions, or one after the other where it has to be.
    calls = recorded[attentions[(layer or len(attentions)) - 1]]
    weights_HTS = torch.cat(calls, dim=2)[0]
    _check_number("head", head, len(weights_HTS))
    weights_TS = weights_HTS.mean(0) if head is None else weights_HTS[head - 1]
    weights_TS = weights_TS[around[1] :]  # what a language's token looks at is of no interest
    return CrossAttention(
        translation=translation,
        source=[
            *tokenizers.source.pieces([*ends.before, *source_ids]),
            *(["</s>"] if ends.ends_source else []),
        ],
        target=[*tokenizers.target.pieces(target_ids), "</s>"],
        weights_TS=weights_TS.float().cpu().numpy(),
    )


def _check_number(name: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise CorpusError(f"--{name} {value}: the model has {name}s 1 to {most}")
