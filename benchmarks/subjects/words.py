"""Made-up words, and a tokenizer to which each is one token."""

import io
import itertools

import sentencepiece

from dragoman_training.data.tokenizer import BEGIN, END, PAD, UNKNOWN

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def made_up_words(vocabulary: int) -> list[str]:
    """Return a word for each id of a vocabulary but the four special ones."""
    syllables = [c + v for c in _CONSONANTS for v in _VOWELS]
    made = itertools.product(syllables, repeat=3)
    return ["".join(word) for word in itertools.islice(made, vocabulary - END - 1)]


def word_tokenizer(vocabulary: int) -> bytes:
    """Return a SentencePiece model of made-up words: a text has as many tokens as words."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(made_up_words(vocabulary)),
        model_writer=model,
        model_type="word",
        vocab_size=vocabulary,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=BEGIN,
        eos_id=END,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    return model.getvalue()
