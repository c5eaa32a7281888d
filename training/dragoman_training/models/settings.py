"""The settings of the models that can be trained, and the sizes of Transformers with a name."""

from dataclasses import dataclass
from typing import Any, Literal

from dragoman_training.config.checks import above, at_least, literals, probability


@dataclass(frozen=True, kw_only=True)
class TransformerSettings:
    """What defines the architecture, apart from the vocabulary.

    The defaults are the paper's base model.
    """

    kind: Literal["transformer"] = "transformer"
    """Which kind of model these settings are of."""
    width: int = 512
    """d_model: the width of every token's vector between layers."""
    heads: int = 8
    """Heads of each attention, which share the width."""
    feed_forward: int = 2048
    """d_ff: the width inside the feed-forward networks."""
    encoder_layers: int = 6
    """Layers of the encoder, which runs once for a sentence."""
    decoder_layers: int = 6
    """Layers of the decoder, which runs once for each token of a translation."""
    dropout: float = 0.1
    """Dropout on each sublayer's output and on the sum of embedding and position."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights."""
    activation_dropout: float = 0.0
    """Dropout inside the feed-forward networks."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """The function inside the feed-forward networks."""
    norm: Literal["pre", "post"] = "post"
    """Where the layer norm stands: before each sublayer, which is easier to train, or after it, as
    in the paper."""
    norm_epsilon: float = 1e-5
    """What a norm adds to the variance; models that Marian trained have 1e-6."""
    positions: Literal["sinusoidal", "marian", "m2m100", "tensor2tensor", "learned"] = "sinusoidal"
    """``sinusoidal`` is the paper's; ``marian`` and ``m2m100`` are waves as transformers has them,
    for models that are to go there (``dragoman export-hf``); ``tensor2tensor`` are those of models
    that Marian trained."""
    max_length: int = 256
    """Positions of either side, the end token included: the longest sentence the model takes."""
    tied_embeddings: Literal["all", "target", "none"] = "all"
    """Matrices that are one: source, target and output; target and output; or each its own."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of the width."""
    output_bias: bool = False
    """Whether the output projection adds a number to the score of each token."""
    decoder: Literal["attention", "ssru"] = "attention"
    """What a decoder layer looks back with: self-attention, or the recurrent cell of Kim et al.
    (2019), which is faster and does well as the student of a larger model."""
    decoder_start: Literal["token", "zero"] = "token"
    """What decoding begins with: the vector of the begin token, or one of zeros, as in Marian's
    models."""

    def __post_init__(self) -> None:
        literals(self)
        for name in ("width", "heads", "feed_forward", "encoder_layers", "decoder_layers"):
            at_least(1, name, getattr(self, name))
        at_least(2, "max_length", self.max_length)
        above(0, "norm_epsilon", self.norm_epsilon)
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            probability(name, getattr(self, name))
        if self.width % self.heads:
            raise ValueError(
                f"width is {self.width} and heads is {self.heads}: "
                "the width must be a multiple of the heads"
            )
        least = {"sinusoidal": 2, "marian": 2, "m2m100": 4, "tensor2tensor": 4}
        if self.positions in least and (self.width % 2 or self.width < least[self.positions]):
            raise ValueError(
                f"width is {self.width}: {self.positions} positions need an even width, "
                f"at least {least[self.positions]}"
            )


@dataclass(frozen=True, kw_only=True)
class RecurrentSettings:
    """An encoder-decoder of gated recurrent units: what translation was before the Transformer."""

    kind: Literal["recurrent"] = "recurrent"
    """Which kind of model these settings are of."""
    attention: Literal["none", "additive"] = "additive"
    """What the decoder sees of the source: one vector for all of it (Cho et al., 2014), or the
    words that it looks at for each of its own (Bahdanau et al., 2015)."""
    width: int = 512
    """Width of the decoder's state, and of each of the encoder's two directions."""
    embedding: int = 256
    """The width of a token's vector, before the encoder and before the output."""
    layers: int = 1
    """Layers of the encoder, and of the decoder."""
    dropout: float = 0.1
    """Dropout on embeddings, between layers, and before the output."""
    max_length: int = 256
    """The longest sentence of either side, the end token included."""
    tied_embeddings: Literal["all", "target", "none"] = "all"
    """Matrices that are one: source, target and output; target and output; or each its own."""
    output_bias: bool = False
    """Whether the output projection adds a number to the score of each token."""

    def __post_init__(self) -> None:
        literals(self)
        for name in ("width", "embedding", "layers"):
            at_least(1, name, getattr(self, name))
        at_least(2, "max_length", self.max_length)
        probability("dropout", self.dropout)


ModelSettings = TransformerSettings | RecurrentSettings

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "width": 128,
        "heads": 4,
        "feed_forward": 256,
        "encoder_layers": 2,
        "decoder_layers": 2,
    },
    "small": {
        "width": 256,
        "heads": 4,
        "feed_forward": 1024,
        "encoder_layers": 4,
        "decoder_layers": 4,
    },
    "base": {
        "width": 512,
        "heads": 8,
        "feed_forward": 2048,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "dropout": 0.1,
    },
    "big": {
        "width": 1024,
        "heads": 16,
        "feed_forward": 4096,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "dropout": 0.3,
    },
}
"""``base`` and ``big`` are rows of the paper's table 3; ``small`` and ``tiny`` suit a CPU."""
