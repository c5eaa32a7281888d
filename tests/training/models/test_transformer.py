"""The model against PyTorch's own, and what must hold of any Transformer."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dragoman_training.models.attention import (
    KeysValues,
    MultiHeadAttention,
    ScaledDotProductAttention,
    record_attention,
)
from dragoman_training.models.layers import EncoderLayer, FeedForward, Residual
from dragoman_training.models.settings import PRESETS, TransformerSettings
from dragoman_training.models.transformer import Transformer
from support.models import LENGTHS, TARGET_LENGTHS, VOCABULARY, grid, tiny_model


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(torch.cat((ours.query.weight, ours.key_value.weight)))
    theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key_value.bias)))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_norm(ours: Residual, theirs: nn.LayerNorm) -> None:
    theirs.load_state_dict(ours.norm.state_dict())


@torch.no_grad()
def torch_twin(model: Transformer) -> nn.Transformer:
    """``torch.nn.Transformer`` with the weights of ours."""
    s = model.settings
    sizes = (s.width, s.heads, s.feed_forward, 0.0)
    kind: dict[str, Any] = {
        "activation": s.activation,
        "batch_first": True,
        "norm_first": s.norm == "pre",
    }
    twin = nn.Transformer(
        *sizes[:2],
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **kind),
            s.encoder_layers,
            norm=nn.LayerNorm(s.width) if s.norm == "pre" else None,
            enable_nested_tensor=False,
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, **kind),
            s.decoder_layers,
            norm=nn.LayerNorm(s.width) if s.norm == "pre" else None,
        ),
        batch_first=True,
    )
    for ours, theirs in zip(model.encoder, twin.encoder.layers, strict=True):
        assert isinstance(ours, EncoderLayer)
        copy_attention(ours.attention, theirs.self_attn)
        copy_norm(ours.attention_residual, theirs.norm1)
        copy_norm(ours.feed_forward_residual, theirs.norm2)
    for ours, theirs in zip(model._decoder_layers, twin.decoder.layers, strict=True):
        copy_attention(ours.self_attention, theirs.self_attn)
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        copy_norm(ours.self_residual, theirs.norm1)
        copy_norm(ours.cross_residual, theirs.norm2)
        copy_norm(ours.feed_forward_residual, theirs.norm3)
    for ours, theirs in zip(
        itertools.chain(model.encoder, model.decoder),
        itertools.chain(twin.encoder.layers, twin.decoder.layers),
        strict=True,
    ):
        assert isinstance(ours.feed_forward, FeedForward)
        theirs.linear1.load_state_dict(ours.feed_forward.widen.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.narrow.state_dict())
    if s.norm == "pre":
        twin.encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        twin.decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    return twin.eval()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_equals_torch_nn_transformer(norm: str, activation: str) -> None:
    model = tiny_model(
        width=64, heads=4, feed_forward=128, encoder_layers=3, norm=norm, activation=activation
    )
    # Fresh norms and biases are all ones and zeros: a mix-up of two of them would go unseen.
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    twin = torch_twin(model)
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    padding = source == 0
    with torch.no_grad():
        embed = [
            e.table(ids) * e.scale + e.positions(torch.arange(ids.shape[1]).expand_as(ids))
            for e, ids in ((model.source_embedding, source), (model.target_embedding, target))
        ]
        hidden = twin(
            *embed,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
            src_key_padding_mask=torch.zeros(padding.shape).masked_fill(padding, -torch.inf),
            tgt_key_padding_mask=torch.zeros(target.shape).masked_fill(target == 0, -torch.inf),
            memory_key_padding_mask=torch.zeros(padding.shape).masked_fill(padding, -torch.inf),
        )
        theirs = model.projection(hidden)
        ours = model(source, LENGTHS, target, TARGET_LENGTHS)
    assert theirs.std() > 0.5  # the comparison is not of zeros
    real = target != 0
    torch.testing.assert_close(ours[real], theirs[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "architecture",
    [
        {"norm": "pre"},
        {"norm": "post", "activation": "swish"},
        {"positions": "learned", "tied_embeddings": "none", "output_bias": True},
        {"tied_embeddings": "target", "scale_embeddings": False},
    ],
    ids=str,
)
def test_a_sentence_does_not_feel_the_padding_of_others(architecture: dict[str, Any]) -> None:
    model = tiny_model(**architecture)
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    with torch.no_grad():
        together = model(source, LENGTHS, target, TARGET_LENGTHS)
        for row, (s, t) in enumerate(zip(LENGTHS, TARGET_LENGTHS, strict=True)):
            alone = model(
                source[row : row + 1, :s], LENGTHS[row : row + 1], target[row : row + 1, :t]
            )
            torch.testing.assert_close(together[row, :t], alone[0], atol=1e-5, rtol=1e-5)


@given(st.data())
@settings(max_examples=50)
def test_a_later_token_never_changes_an_earlier_output(data: st.DataObject) -> None:
    model = tiny_model(seed=3).double()
    token = st.integers(4, VOCABULARY - 1)
    source = torch.tensor([data.draw(st.lists(token, min_size=1, max_size=10))])
    target = data.draw(st.lists(token, min_size=2, max_size=10))
    at = data.draw(st.integers(1, len(target) - 1))
    tail = data.draw(st.lists(token, min_size=1, max_size=6))
    lengths = torch.tensor([source.shape[1]])
    with torch.no_grad():
        before = model(source, lengths, torch.tensor([target]))[0, :at]
        after = model(source, lengths, torch.tensor([target[:at] + tail]))[0, :at]
    torch.testing.assert_close(before, after, atol=1e-12, rtol=0)


def test_gradients_do_not_reach_later_tokens() -> None:
    model = tiny_model()
    embedded: list[Tensor] = []
    model.target_embedding.register_forward_hook(lambda m, i, out: embedded.append(out))
    source = grid(LENGTHS[:1], 1)
    model(source, LENGTHS[:1], grid(torch.tensor([8]), 2))[0, 4].sum().backward(
        inputs=[embedded[0]]
    )
    assert embedded[0].grad is not None
    reached = embedded[0].grad.abs().sum(1) > 0
    assert reached.tolist() == [True] * 5 + [False] * 3


def test_attention_weights_sum_to_one_and_pass_over_padding() -> None:
    model = tiny_model()
    source, target = grid(LENGTHS, 1), grid(TARGET_LENGTHS, 2)
    with torch.no_grad(), record_attention(model) as recorded:
        model(source, LENGTHS, target, TARGET_LENGTHS)
    assert len(recorded) == 6
    for name, calls in recorded.items():
        (weights,) = calls
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert (weights >= 0).all()
        if name.startswith("encoder") or name.endswith("cross_attention"):
            assert weights.shape[-1] == 9
            assert weights.masked_select((source == 0)[:, None, None, :]).sum() == 0
        else:
            assert weights.shape == (4, 2, 8, 8)
            assert weights.triu(1).sum() == 0


@pytest.mark.parametrize("masked", [True, False])
def test_recording_weights_changes_nothing_else(masked: bool) -> None:
    torch.manual_seed(0)
    attention = ScaledDotProductAttention(0.0)
    q, k, v = (torch.randn(3, 2, n, 8) for n in (4, 6, 6))
    mask = torch.rand(3, 1, 4, 6) > 0.3 if masked else None
    plain = attention(q, KeysValues(k, v), mask)
    with record_attention(nn.ModuleDict({"attention": attention})) as recorded:
        torch.testing.assert_close(attention(q, KeysValues(k, v), mask), plain)
    ((weights,),) = recorded.values()
    torch.testing.assert_close(weights @ v, plain)
    attention(q, KeysValues(k, v), mask)
    assert len(next(iter(recorded.values()))) == 1


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_steps_with_a_cache_equal_teacher_forcing(norm: str) -> None:
    model = tiny_model(norm=norm)
    source, target = grid(LENGTHS, 1), grid(torch.tensor([7, 7, 7, 7]), 2)
    order = torch.tensor([2, 0, 1, 3])
    with torch.no_grad():
        whole = model(source, LENGTHS, target).log_softmax(-1)
        state = model.start(model.encode(source, LENGTHS))
        for t in range(7):
            log_probs, state = model.step(target[:, t], state)
            torch.testing.assert_close(log_probs, whole[:, t], atol=1e-5, rtol=1e-5)
            state = state.select(order)
            target, whole = target[order], whole[order]


@pytest.mark.parametrize(("tied", "matrices"), [("all", 1), ("target", 2), ("none", 3)])
def test_tied_embeddings_are_one_matrix(tied: str, matrices: int) -> None:
    model = tiny_model(tied_embeddings=tied)
    shapes = [p.shape for p in model.parameters()]
    assert shapes.count(torch.Size((VOCABULARY, 16))) == matrices
    assert (model.projection.weight is model.target_embedding.table.weight) == (tied != "none")


def test_tying_all_needs_equal_vocabularies() -> None:
    with pytest.raises(ValueError, match="joint tokenizer"):
        Transformer(TransformerSettings(), source_vocabulary=10, target_vocabulary=11)


@pytest.mark.parametrize(("preset", "millions"), [("base", 65), ("big", 213)])
def test_presets_have_the_size_that_the_paper_gives(preset: str, millions: int) -> None:
    with torch.device("meta"):
        model = Transformer(
            TransformerSettings(**PRESETS[preset]),
            source_vocabulary=37_000,
            target_vocabulary=37_000,
        )
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(millions * 1e6, rel=0.04)
