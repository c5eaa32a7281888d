"""Label-smoothed cross entropy, fused with the output projection.

The smoothed target gives the right token 1 - e and spreads e evenly over the vocabulary:

    loss = log Σⱼ exp(zⱼ) - (1 - e) z_y - e mean(z),        z = W h + b

Two things make it cheaper than projecting and then calling ``F.cross_entropy``, which gives the
same number. mean(z) is a dot product of h with the mean row of W, so it needs no pass over the
logits. And the gradient is computed together with the loss, piece by piece, so that no more than
``PIECE`` rows of logits exist at a time, and they are overwritten instead of copied.

A bias of minus infinity bans a token, as models from elsewhere have it. The smoothed target is
spread over the others alone, and where a banned token is the right one there is nothing to learn.

Shapes: N tokens, D width, V vocabulary, P tokens of one piece.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

PIECE = 256
"""Tokens projected at a time: 16 MB of logits at a vocabulary of 16,000, which caches can hold."""


class TokenLoss(NamedTuple):
    """Both are sums over tokens."""

    smoothed: Tensor
    """What is minimised."""
    nll: Tensor
    """Negative log-likelihood without smoothing, for perplexity; carries no gradient."""


def projected_loss(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    labels_N: Tensor,
    smoothing: float,
) -> TokenLoss:
    """The loss of predicting each label from its hidden vector."""
    banned_V = None if bias_V is None else bias_V.detach().isneginf()
    if banned_V is not None and not banned_V.any():
        banned_V = None
    if banned_V is not None:
        learnt_N = ~banned_V[labels_N]
        hidden_ND, labels_N = hidden_ND[learnt_N], labels_N[learnt_N]
    smoothed, nll = _ProjectedLoss.apply(  # type: ignore[no-untyped-call]
        hidden_ND, weight_VD, bias_V, banned_V, labels_N, smoothing
    )
    return TokenLoss(smoothed, nll)


def _means(
    weight_VD: Tensor, bias_V: Tensor | None, banned_V: Tensor | None
) -> tuple[Tensor, Tensor | float, int]:
    """Return the mean row and bias of the tokens that are not banned, and how many they are."""
    if bias_V is None or banned_V is None:
        return weight_VD.mean(0), 0.0 if bias_V is None else bias_V.mean(), len(weight_VD)
    count = len(weight_VD) - int(banned_V.sum())
    mean_D = (weight_VD.sum(0) - weight_VD[banned_V].sum(0)) / count
    return mean_D, bias_V[~banned_V].mean(), count


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        banned_V: Tensor | None,
        labels_N: Tensor,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        device = hidden_ND.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        wants_grad = any(ctx.needs_input_grad)
        with torch.autocast(device, enabled=False):
            weight = weight_VD.to(dtype) if dtype else weight_VD
            mean_D, mean_bias, spread = _means(weight_VD, bias_V, banned_V)
            smoothed = hidden_ND.new_zeros((), dtype=torch.float32)
            nll = torch.zeros_like(smoothed)
            grad_hidden = torch.empty_like(hidden_ND) if wants_grad else None
            grad_weight = torch.zeros_like(weight_VD) if wants_grad else None
            grad_bias = None if bias_V is None or not wants_grad else torch.zeros_like(bias_V)
            for at in range(0, hidden_ND.shape[0], PIECE):
                h_PD = hidden_ND[at : at + PIECE]
                y_P = labels_N[at : at + PIECE]
                logits_PV = (h_PD.to(weight.dtype) @ weight.T).float()
                if bias_V is not None:
                    logits_PV += bias_V
                right_P = logits_PV.gather(1, y_P[:, None]).squeeze(1)
                highest_P = logits_PV.amax(1)
                exp_PV = logits_PV.sub_(highest_P[:, None]).exp_()
                total_P = exp_PV.sum(1)
                log_total_P = highest_P + total_P.log()
                mean_P = h_PD.float() @ mean_D + mean_bias
                nll += (log_total_P - right_P).sum()
                smoothed += (log_total_P - (1 - smoothing) * right_P - smoothing * mean_P).sum()
                if grad_hidden is None or grad_weight is None:
                    continue
                # d loss / d z = exp(z) / total - (1 - e) [y] - e / V, where V counts what is not
                # banned. The division is moved to the narrow side of each product, and the constant
                # becomes the mean row of W again.
                share_P1 = total_P.reciprocal()[:, None]
                exp = exp_PV.to(weight.dtype)
                grad_hidden[at : at + PIECE] = (
                    (exp @ weight).float() * share_P1
                    - (1 - smoothing) * weight_VD.index_select(0, y_P)
                    - smoothing * mean_D
                )
                scaled_PD = (h_PD * share_P1).to(weight.dtype)
                grad_weight += (exp.T @ scaled_PD).float()
                grad_weight.index_add_(0, y_P, h_PD.float(), alpha=-(1 - smoothing))
                if grad_bias is not None:
                    grad_bias += (exp_PV.T @ share_P1).squeeze(1)
                    grad_bias.index_add_(0, y_P, right_P.new_full(y_P.shape, smoothing - 1))
            if grad_weight is not None:
                grad_weight -= hidden_ND.float().sum(0) * (smoothing / spread)
            if grad_bias is not None:
                grad_bias -= smoothing * hidden_ND.shape[0] / spread
            if banned_V is not None and grad_weight is not None and grad_bias is not None:
                grad_weight[banned_V] = 0
                grad_bias[banned_V] = 0
        ctx.grads = (grad_hidden, grad_weight, grad_bias)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scale = grads[0]
        grad_hidden, grad_weight, grad_bias = ctx.grads
        return (
            grad_hidden * scale,
            grad_weight * scale,
            None if grad_bias is None else grad_bias * scale,
            None,
            None,
            None,
        )
