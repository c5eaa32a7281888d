"""Marian's forward pass in plain numpy: what an imported model must equal.

It reads weights by Marian's own names, knows nothing of our Transformer, and translates one
sentence at a time, greedily. Shapes: T positions, D width, H heads, S positions looked at,
V vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class MarianReference:
    """A Transformer of Marian's, with self-attention or SSRUs in its decoder."""

    def __init__(
        self, weights: Mapping[str, Floats], config: Mapping[str, Any], *, end: int, unknown: int
    ) -> None:
        """``config`` has the keys of Marian's configuration, with values as text."""
        self._w = weights
        self._heads = int(config["transformer-heads"])
        self._encoder_layers = int(config["enc-depth"])
        self._decoder_layers = int(config["dec-depth"])
        self._is_recurrent = config.get("transformer-decoder-autoreg") == "rnn"
        self._norm_first = config.get("transformer-preprocess") == "n"
        self._activation = config["transformer-ffn-activation"]
        self._end, self._unknown = end, unknown
        shared = "Wemb" in weights
        self._source = weights["Wemb" if shared else "encoder_Wemb"]
        self._target = weights["Wemb" if shared else "decoder_Wemb"]
        output = weights.get("decoder_ff_logit_out_W")
        self._output_DV = self._target.T if output is None else output

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        """Return the best token of each step, up to the end token, which is left out.

        ``limit`` counts the end token, and so there are fewer.
        """
        memory_TD = self._encode([*source, self._end])
        states: list[Any] = [None] * self._decoder_layers
        found: list[int] = []
        while len(found) < limit - 1:
            logits_V = self._step(found, memory_TD, states)
            logits_V[self._unknown] = -np.inf
            best = int(logits_V.argmax())
            if best == self._end:
                break
            found.append(best)
        return found

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> Floats:
        """Return the log-probabilities of every token after each of the target's, [T, V]."""
        memory_TD = self._encode([*source, self._end])
        states: list[Any] = [None] * self._decoder_layers
        lines = []
        for length in range(len(target) + 1):
            logits_V = self._step(list(target[:length]), memory_TD, states)
            logits_V[self._unknown] = -np.inf
            lines.append(
                logits_V - np.log(np.exp(logits_V - logits_V.max()).sum()) - logits_V.max()
            )
        return np.stack(lines)

    def _encode(self, ids: Sequence[int]) -> Floats:
        width = self._source.shape[1]
        x_TD = self._source[list(ids)] * np.float32(width**0.5)
        x_TD = x_TD + self._positions(0, len(ids))
        for number in range(1, self._encoder_layers + 1):
            name = f"encoder_l{number}"
            x_TD = self._sublayer(
                x_TD, f"{name}_self_Wo", lambda y, n=name: self._attend(f"{n}_self", y, y)
            )
            x_TD = self._feed_forward(x_TD, name)
        return self._normed(x_TD, "encoder_top") if self._norm_first else x_TD

    def _step(self, before: list[int], memory_TD: Floats, states: list[Any]) -> Floats:
        """Return the logits of the token that follows, and leave new states behind."""
        width = self._target.shape[1]
        x_TD = np.zeros((1, width), np.float32)
        if before:
            x_TD = self._target[before[-1:]] * np.float32(width**0.5)
        x_TD = x_TD + self._positions(len(before), 1)
        for number in range(1, self._decoder_layers + 1):
            name = f"decoder_l{number}"
            x_TD = self._look_back(x_TD, name, states, number - 1)
            x_TD = self._sublayer(
                x_TD,
                f"{name}_context_Wo",
                lambda y, n=name: self._attend(f"{n}_context", y, memory_TD),
            )
            x_TD = self._feed_forward(x_TD, name)
        if self._norm_first:
            x_TD = self._normed(x_TD, "decoder_top")
        logits_V: Floats = (x_TD @ self._output_DV)[0]
        return logits_V + self._w["decoder_ff_logit_out_b"][0]

    def _look_back(self, x_TD: Floats, name: str, states: list[Any], layer: int) -> Floats:
        def cell(y_TD: Floats) -> Floats:
            keep = _sigmoid(y_TD @ self._w[f"{name}_rnn_Wf"] + self._w[f"{name}_rnn_bf"])
            new = y_TD @ self._w[f"{name}_rnn_W"]
            before = np.zeros_like(new) if states[layer] is None else states[layer]
            states[layer] = keep * before + (1 - keep) * new
            return np.maximum(states[layer], 0)

        def attention(y_TD: Floats) -> Floats:
            seen = y_TD if states[layer] is None else np.concatenate((states[layer], y_TD))
            states[layer] = seen
            return self._attend(f"{name}_self", y_TD, seen)

        if not self._is_recurrent:
            return self._sublayer(x_TD, f"{name}_self_Wo", attention)
        norm = f"{name}_rnn" if self._norm_first else f"{name}_rnn_ffn"
        return self._sublayer(x_TD, norm, cell)

    def _feed_forward(self, x_TD: Floats, name: str) -> Floats:
        def network(y_TD: Floats) -> Floats:
            wide = y_TD @ self._w[f"{name}_ffn_W1"] + self._w[f"{name}_ffn_b1"]
            wide = np.maximum(wide, 0) if self._activation == "relu" else wide * _sigmoid(wide)
            return wide @ self._w[f"{name}_ffn_W2"] + self._w[f"{name}_ffn_b2"]

        return self._sublayer(x_TD, f"{name}_ffn_ffn", network)

    def _sublayer(self, x_TD: Floats, norm: str, compute: Any) -> Floats:
        if self._norm_first:
            return x_TD + compute(self._normed(x_TD, norm, "_pre"))
        return self._normed(x_TD + compute(x_TD), norm)

    def _normed(self, x_TD: Floats, name: str, end: str = "") -> Floats:
        mean = x_TD.mean(axis=-1, keepdims=True)
        variance = ((x_TD - mean) ** 2).mean(axis=-1, keepdims=True)
        normed = (x_TD - mean) / np.sqrt(variance + np.float32(1e-6))
        return normed * self._w[f"{name}_ln_scale{end}"] + self._w[f"{name}_ln_bias{end}"]

    def _attend(self, name: str, x_TD: Floats, seen_SD: Floats) -> Floats:
        q, k, v = (
            self._heads_of(y @ self._w[f"{name}_W{part}"] + self._w[f"{name}_b{part}"])
            for part, y in (("q", x_TD), ("k", seen_SD), ("v", seen_SD))
        )
        scores_HTS = q @ k.transpose(0, 2, 1) / np.float32(q.shape[-1] ** 0.5)
        scores_HTS = np.exp(scores_HTS - scores_HTS.max(axis=-1, keepdims=True))
        scores_HTS /= scores_HTS.sum(axis=-1, keepdims=True)
        x_TD = (scores_HTS @ v).transpose(1, 0, 2).reshape(x_TD.shape)
        return x_TD @ self._w[f"{name}_Wo"] + self._w[f"{name}_bo"]

    def _heads_of(self, x_TD: Floats) -> Floats:
        return x_TD.reshape(len(x_TD), self._heads, -1).transpose(1, 0, 2)

    def _positions(self, first: int, count: int) -> Floats:
        half = self._target.shape[1] // 2
        frequency = np.exp(
            np.arange(half, dtype=np.float32) * np.float32(-np.log(1e4) / (half - 1))
        )
        angle = np.arange(first, first + count, dtype=np.float32)[:, None] * frequency
        return np.concatenate((np.sin(angle), np.cos(angle)), axis=1)


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))
