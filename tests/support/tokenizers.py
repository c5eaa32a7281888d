"""Small tokenizers, and the sentences that they learnt from."""

from dragoman_training.data.tokenizer import (
    Tokenizer,
    TokenizerPair,
    TokenizerSettings,
    train_tokenizer,
)

SENTENCES = [
    f"the {thing} of number {n} is over there"
    for n in range(40)
    for thing in ("house", "mouse", "louse", "boat", "coat", "goat")
]


def trained(kind: str, normalization: str = "identity") -> Tokenizer:
    settings = TokenizerSettings(kind=kind, vocabulary=320, normalization=normalization)  # type: ignore[arg-type]
    return train_tokenizer(SENTENCES, settings, seed=1)


TRAINED = {kind: trained(kind) for kind in ("unigram", "bpe")}


PAIR = TokenizerPair(TRAINED["unigram"], TRAINED["bpe"])
