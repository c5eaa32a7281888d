"""What a model of ``argos_models`` means, computed plainly in float64 and with nothing of ours."""

from collections.abc import Mapping, Sequence
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

from support.argos_models import GELU, HEADS, LAYERS, RELU, SWISH, WIDTH, Kind


class PlainTransformer:
    """A CTranslate2 model, computed plainly from its variables."""

    def __init__(self, kind: Kind, variables: Mapping[str, npt.NDArray[np.float64]]) -> None:
        self._kind, self._held = kind, variables
        self.end, self.begin = kind.special.index("</s>"), kind.special.index("<unk>")
        if "<s>" in kind.special:
            self.begin = kind.special.index("<s>")

    def greedy(self, source: Sequence[int], limit: int) -> tuple[int, ...]:
        """The most probable token each time; at most ``limit``, the end included."""
        tail = (self.end,) if self._kind.adds_end else ()
        memory = self._layers("encoder", self._embed("encoder", (*source, *tail)), None)
        ids = [self.begin]
        while len(ids) < limit:
            x = self._layers("decoder", self._embed("decoder", ids), memory)
            logits = self._linear("decoder/projection", x[-1])
            ids.append(int(logits.argmax()))
            if ids[-1] == self.end:
                return tuple(ids[1:-1])
        return tuple(ids[1:])

    def _embed(self, side: str, ids: Sequence[int]) -> npt.NDArray[np.float64]:
        table = "encoder/embeddings_0" if side == "encoder" else "decoder/embeddings"
        x = self._held[f"{table}/weight"][list(ids)] * np.sqrt(WIDTH)
        if side == "decoder" and self._kind.zero_start:
            x[0] = 0
        stored = f"{side}/position_encodings/encodings"
        if stored in self._held:
            return x + self._held[stored][: len(ids)]
        frequency = np.exp(np.arange(WIDTH // 2) * -np.log(1e4) / (WIDTH // 2 - 1))
        angle = np.arange(1, len(ids) + 1)[:, None] * frequency
        return x + np.concatenate((np.sin(angle), np.cos(angle)), axis=1)

    def _layers(self, side: str, x: npt.NDArray[Any], memory: Any) -> npt.NDArray[np.float64]:
        for number in range(LAYERS):
            layer = f"{side}/layer_{number}"
            name = f"{layer}/self_attention"
            x = self._sublayer(name, x, lambda y, n=name: self._self_attention(n, y, side))
            if side == "decoder":
                name = f"{layer}/attention"
                x = self._sublayer(name, x, lambda y, n=name: self._cross_attention(n, y, memory))
            x = self._sublayer(f"{layer}/ffn", x, lambda y, n=f"{layer}/ffn": self._ffn(n, y))
        return self._norm(f"{side}/layer_norm", x) if self._kind.pre_norm else x

    def _sublayer(self, name: str, x: npt.NDArray[Any], compute: Any) -> npt.NDArray[Any]:
        if self._kind.pre_norm:
            return x + compute(self._norm(f"{name}/layer_norm", x))
        return self._norm(f"{name}/layer_norm", x + compute(x))

    def _self_attention(self, name: str, x: npt.NDArray[Any], side: str) -> npt.NDArray[Any]:
        q, k, v = np.split(self._linear(f"{name}/linear_0", x), 3, axis=1)
        future = np.triu(np.ones((len(x), len(x)), bool), 1) if side == "decoder" else None
        return self._linear(f"{name}/linear_1", _attend(q, k, v, future))

    def _cross_attention(self, name: str, x: npt.NDArray[Any], memory: Any) -> npt.NDArray[Any]:
        k, v = np.split(self._linear(f"{name}/linear_1", memory), 2, axis=1)
        q = self._linear(f"{name}/linear_0", x)
        return self._linear(f"{name}/linear_2", _attend(q, k, v, None))

    def _ffn(self, name: str, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        x = self._linear(f"{name}/linear_0", x)
        return self._linear(f"{name}/linear_1", _ACTIVATIONS[self._kind.activation](x))

    def _linear(self, name: str, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        bias = self._held.get(f"{name}/bias", np.float64(0))
        return x @ self._held[f"{name}/weight"].T + bias

    def _norm(self, name: str, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)
        return x * self._held[f"{name}/gamma"] + self._held[f"{name}/beta"]


_ACTIVATIONS = {
    RELU: lambda x: np.maximum(x, 0),
    SWISH: lambda x: x / (1 + np.exp(-x)),
    GELU: lambda x: 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2))),
}


def _attend(q: Any, k: Any, v: Any, hidden: Any) -> npt.NDArray[Any]:
    heads = []
    for head in range(HEADS):
        part = slice(head * (WIDTH // HEADS), (head + 1) * (WIDTH // HEADS))
        scores = q[:, part] @ k[:, part].T / np.sqrt(WIDTH // HEADS)
        if hidden is not None:
            scores = np.where(hidden, -np.inf, scores)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        heads.append(scores / scores.sum(axis=1, keepdims=True) @ v[:, part])
    return np.concatenate(heads, axis=1)
