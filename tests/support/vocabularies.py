"""Vocabularies of several kinds, as the server has them."""

import io

import sentencepiece as spm

from dragoman_server.text.vocabulary import Vocabulary
from support import MODEL
from support.tokenizers import SENTENCES, TRAINED


def without_bytes() -> Vocabulary:
    """A vocabulary that knows nothing but the letters of a few sentences."""
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return Vocabulary(model.getvalue())


VOCABULARIES = {
    "unigram": Vocabulary(TRAINED["unigram"].model),
    "bpe": Vocabulary(TRAINED["bpe"].model),
    "en-pt": Vocabulary((MODEL / "tokenizer.spm").read_bytes()),
    "without bytes": without_bytes(),
}


TINY = VOCABULARIES["unigram"]
