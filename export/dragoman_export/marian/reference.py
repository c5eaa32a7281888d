"""Marian's forward pass in plain numpy: what an imported model must equal.

It reads weights by Marian's own names, knows nothing of our Transformer, and translates one
sentence at a time, greedily. Shapes: T positions, D width, H heads, K width of a head, S positions
that are looked at, V vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dragoman_export.marian.model_file import Floats

NORM_EPSILON = np.float32(1e-6)
"""Number that norms add to the variance."""


class MarianReference:
    """A Transformer of Marian's, with self-attention or SSRUs in its decoder."""

    def __init__(
        self, weights: Mapping[str, Floats], config: Mapping[str, Any], *, end: int, unknown: int
    ) -> None:
        """``config`` has the keys of Marian's configuration, with values as text."""
        self._weights = weights
        self._heads = int(config["transformer-heads"])
        self._encoder_layers = int(config["enc-depth"])
        self._decoder_layers = int(config["dec-depth"])
        self._has_cells = config.get("transformer-decoder-autoreg") == "rnn"
        self._norm_first = config.get("transformer-preprocess") == "n"
        self._is_relu = config.get("transformer-ffn-activation") == "relu"
        self._end, self._unknown = end, unknown
        is_shared = "Wemb" in weights
        self._source_VD = weights["Wemb" if is_shared else "encoder_Wemb"]
        self._target_VD = weights["Wemb" if is_shared else "decoder_Wemb"]
        self._output_DV = weights.get("decoder_ff_logit_out_W", self._target_VD.T)

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        """Return the best token of each step, up to the end token, which is left out.

        ``limit`` counts the end token, and so there are fewer.
        """
        memory_SD = self._encode(source)
        states = self._first_states()
        found: list[int] = []
        while len(found) < limit - 1:
            best = int(self._step(found, memory_SD, states).argmax())
            if best == self._end:
                break
            found.append(best)
        return found

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> Floats:
        """Return the log-probabilities of every token after each of the target's, [T, V]."""
        memory_SD = self._encode(source)
        states = self._first_states()
        logits_TV = np.stack(
            [self._step(target[:length], memory_SD, states) for length in range(len(target) + 1)]
        )
        logits_TV -= logits_TV.max(axis=-1, keepdims=True)
        return logits_TV - np.log(np.exp(logits_TV).sum(axis=-1, keepdims=True))

    def _encode(self, source: Sequence[int]) -> Floats:
        ids = [*source, self._end]
        x_SD = self._placed(self._source_VD[ids], first=0)
        for number in range(1, self._encoder_layers + 1):
            x_SD = self._attention(x_SD, f"encoder_l{number}_self", lambda y_SD: y_SD)
            x_SD = self._feed_forward(x_SD, f"encoder_l{number}")
        return self._normed(x_SD, "encoder_top") if self._norm_first else x_SD

    def _first_states(self) -> list[Floats]:
        """Return what each decoder layer knows of the tokens so far, before there is one."""
        width = self._target_VD.shape[1]
        return [np.zeros((int(self._has_cells), width), np.float32)] * self._decoder_layers

    def _step(self, before: Sequence[int], memory_SD: Floats, states: list[Floats]) -> Floats:
        """Return the logits of the token that follows, and leave new states behind."""
        newest_1D = np.zeros_like(self._target_VD[:1])
        if before:
            newest_1D = self._target_VD[[before[-1]]]
        x_1D = self._placed(newest_1D, first=len(before))
        for number in range(1, self._decoder_layers + 1):
            name = f"decoder_l{number}"
            x_1D = self._look_back(x_1D, name, states, number - 1)
            x_1D = self._attention(x_1D, f"{name}_context", lambda _: memory_SD)
            x_1D = self._feed_forward(x_1D, name)
        if self._norm_first:
            x_1D = self._normed(x_1D, "decoder_top")
        logits_V: Floats = (x_1D @ self._output_DV)[0]
        if "decoder_ff_logit_out_b" in self._weights:
            logits_V = logits_V + self._weights["decoder_ff_logit_out_b"][0]
        logits_V[self._unknown] = -np.inf
        return logits_V

    def _look_back(self, x_1D: Floats, name: str, states: list[Floats], layer: int) -> Floats:
        """Write down the newest token in the layer's state, and return what the layer sees."""

        def cell(y_1D: Floats) -> Floats:
            keep_1D = _sigmoid(self._linear(y_1D, f"{name}_rnn", "f"))
            new_1D = y_1D @ self._weights[f"{name}_rnn_W"]
            states[layer] = keep_1D * states[layer] + (1 - keep_1D) * new_1D
            return np.maximum(states[layer], 0)

        def tokens_so_far(y_1D: Floats) -> Floats:
            states[layer] = np.concatenate((states[layer], y_1D))
            return states[layer]

        if not self._has_cells:
            return self._attention(x_1D, f"{name}_self", tokens_so_far)
        return self._sublayer(x_1D, f"{name}_rnn" + "_ffn" * (not self._norm_first), cell)

    def _attention(self, x_TD: Floats, name: str, seen: Callable[[Floats], Floats]) -> Floats:
        def attention(y_TD: Floats) -> Floats:
            seen_SD = seen(y_TD)
            q_HTK, k_HSK, v_HSK = (
                self._split(self._linear(each, name, letter))
                for each, letter in ((y_TD, "q"), (seen_SD, "k"), (seen_SD, "v"))
            )
            scores_HTS = q_HTK @ k_HSK.transpose(0, 2, 1) / np.float32(q_HTK.shape[-1] ** 0.5)
            scores_HTS = np.exp(scores_HTS - scores_HTS.max(axis=-1, keepdims=True))
            scores_HTS /= scores_HTS.sum(axis=-1, keepdims=True)
            joined_TD = (scores_HTS @ v_HSK).transpose(1, 0, 2).reshape(y_TD.shape)
            return self._linear(joined_TD, name, "o")

        return self._sublayer(x_TD, f"{name}_Wo", attention)

    def _feed_forward(self, x_TD: Floats, name: str) -> Floats:
        def network(y_TD: Floats) -> Floats:
            wide_TF = self._linear(y_TD, f"{name}_ffn", "1")
            wide_TF = np.maximum(wide_TF, 0) if self._is_relu else wide_TF * _sigmoid(wide_TF)
            return self._linear(wide_TF, f"{name}_ffn", "2")

        return self._sublayer(x_TD, f"{name}_ffn_ffn", network)

    def _sublayer(self, x_TD: Floats, norm: str, compute: Callable[[Floats], Floats]) -> Floats:
        if self._norm_first:
            return x_TD + compute(self._normed(x_TD, norm, "_pre"))
        return self._normed(x_TD + compute(x_TD), norm)

    def _normed(self, x_TD: Floats, name: str, end: str = "") -> Floats:
        centred_TD = x_TD - x_TD.mean(axis=-1, keepdims=True)
        variance_T1 = (centred_TD**2).mean(axis=-1, keepdims=True)
        scale, bias = (self._weights[f"{name}_ln_{part}{end}"] for part in ("scale", "bias"))
        normed_TD: Floats = centred_TD / np.sqrt(variance_T1 + NORM_EPSILON)
        return normed_TD * scale + bias

    def _linear(self, x_TD: Floats, name: str, letter: str) -> Floats:
        product: Floats = x_TD @ self._weights[f"{name}_W{letter}"]
        return product + self._weights[f"{name}_b{letter}"]

    def _split(self, x_TD: Floats) -> Floats:
        return x_TD.reshape(len(x_TD), self._heads, -1).transpose(1, 0, 2)

    def _placed(self, vectors_TD: Floats, first: int) -> Floats:
        """Return scaled embeddings with their positions added: all sines, then all cosines."""
        count, width = vectors_TD.shape
        frequency = np.exp(np.arange(width // 2) * (-np.log(1e4) / (width // 2 - 1)))
        angle = (np.arange(first, first + count)[:, None] * frequency).astype(np.float32)
        positions_TD = np.concatenate((np.sin(angle), np.cos(angle)), axis=1)
        return vectors_TD * np.float32(width**0.5) + positions_TD


def _sigmoid(x: Floats) -> Floats:
    return np.reciprocal(1 + np.exp(-x))
