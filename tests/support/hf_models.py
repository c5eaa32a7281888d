"""Models of transformers' own classes with random weights, saved as it saves them, with tokenizers
that SentencePiece learnt from made-up text."""

import io
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece as spm
import torch
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
)

POSITIONS = 64
SYLLABLES = ["ca", "sa", "li", "vro", "gua", "so", "mar", "pão", "rua", "noi", "te", "flor", "çê"]
MARKS = ["", "", "", ",", ".", "!", "?", ";", " –", "…"]
ODD = [
    *(
        "",
        " ",
        "   ",
        "\t",
        "\n",
        "a",
        "Ünïcödé",
        "日本語",
        "ﬁne ﬂow",
        "Ⅷ ½ ²",
        "🙂 casa",
        "casa🙂sa",
    ),
    *(
        "  casa  mar  ",
        "casa\u00a0mar",
        "casa\tmar\nrua",
        "<unk",
        "> <",
        "e\u0301",
        "ÀÉ",
        "\u200bcasa",
    ),
    *(
        "CASA",
        "caSA maR",
        "“casa”",
        "l'rua",
        "…",
        "....",
        "1234567",
        "3,14",
        "-5",
        "a@b.pt",
        "#casa",
    ),
    *(
        "https://rua.pt/?a=1&b=2",
        "casa>>mar<<",
        "a__pt__b",
        "\ufeffcasa",
        "ｃａｓａ",
        "①",
        "カﾞ",
        "ſa",
    ),
]
SIZES: dict[str, Any] = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_position_embeddings": POSITIONS,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
LANGUAGES = (">>por<<", ">>spa<<", ">>cmn_Hans<<", ">>pt_br<<")


def sentences(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 3))) for _ in range(80)]
    return [
        " ".join(word + rng.choice(MARKS) for word in rng.choices(words, k=rng.randint(1, 9)))
        for _ in range(count)
    ]


def strings() -> list[str]:
    """500, of which some are odd, and some made of random letters."""
    rng = random.Random(7)
    letters = "".join(SYLLABLES) + "  .,!?<>_▁日é🙂0129"
    noise = ["".join(rng.choices(letters, k=rng.randint(1, 30))) for _ in range(150)]
    return [*ODD, *noise, *sentences(500 - len(ODD) - len(noise), seed=8)]


@cache
def sentencepiece_model(kind: str = "unigram", size: int = 90, seed: int = 1) -> bytes:
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(400, seed)),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=kind == "bpe",
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    """Without the special ones."""
    processor = spm.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]


def lively(model: Any, seed: int, sharpness: float) -> Any:
    """Random weights whose outputs vary and come to an end.

    Left as random numbers alone, a model says the same few tokens for ever, whatever their scale.
    So the last feed-forward network turns what it is given, and the embeddings are the places of
    one vector that is turned so again and again: each token leads to another, unless attention says
    otherwise. ``act(z) - act(-z) = z`` for relu, gelu and swish alike, so a network can turn. How
    loud each part is was found by trying: with quieter attention all inputs get the same output,
    with louder attention a few tokens come again and again.
    """
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    width = model.config.d_model
    decoder = model.model.decoder
    norm_first = hasattr(decoder, "layer_norm")  # then there is more to outweigh
    length = 3.0
    if not model.config.scale_embedding:  # then positions would drown shorter vectors
        length, sharpness = length * width**0.5, sharpness * width**-0.5
    turn, mix = (torch.linalg.qr(noise(width, width))[0] for _ in range(2))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.copy_(1 + 0.1 * noise(*parameter.shape))
            elif parameter.ndim == 1:
                parameter.copy_(0.1 * noise(*parameter.shape))
            elif "embed_positions" not in name:
                quiet = "decoder" in name and ("out_proj" in name or "fc2" in name)
                gain = (2.0 if norm_first else 0.44) if quiet else 1.5
                parameter.copy_(gain * width**-0.5 * noise(*parameter.shape))
        last = decoder.layers[-1]
        gain = 18.0 if norm_first else 6.0
        last.fc1.weight.copy_(torch.cat((mix, -mix)))
        last.fc2.weight.copy_(gain * torch.cat((turn @ mix.T, -turn @ mix.T), dim=1))
        for table in {*model.modules()}:
            if isinstance(table, torch.nn.Embedding) and "Sinusoidal" not in type(table).__name__:
                table.weight.copy_(length * _orbit(turn, len(table.weight), seed))
                table.weight[model.config.pad_token_id].zero_()
        if model.lm_head.weight is not decoder.embed_tokens.weight:
            model.lm_head.weight.copy_(length * _orbit(turn, len(model.lm_head.weight), seed))
        final = decoder.layer_norm if norm_first else last.final_layer_norm
        if norm_first:  # there is no bias of the output that could lean towards the end
            final.bias.add_(0.8 * model.lm_head.weight[model.config.eos_token_id])
        final.weight.mul_(sharpness)
        final.bias.mul_(sharpness)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(noise(*model.final_logits_bias.shape))
            model.final_logits_bias[0, model.config.eos_token_id] += 4.0
    return model.eval()


def _orbit(turn: torch.Tensor, size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    vector = torch.randn(len(turn), generator=generator)
    rows = torch.empty(size, len(turn))
    for place in torch.randperm(size, generator=generator).tolist():
        rows[place] = vector / vector.norm()
        vector = turn @ vector
    return rows


def save_marian(
    path: Path,
    *,
    separate: bool = False,
    languages: tuple[str, ...] = LANGUAGES,
    seed: int = 1,
    sharpness: float = 1.0,
    **config: Any,
) -> tuple[MarianMTModel, MarianTokenizer]:
    path.mkdir(parents=True, exist_ok=True)
    models = sentencepiece_model(seed=1), sentencepiece_model(seed=2)
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (path / name).write_bytes(model)
    sides = [[*pieces_of(model), *languages] for model in models]
    if not separate:
        sides = [[*pieces_of(models[0]), *pieces_of(models[1]), *languages]] * 2
    names = ["vocab.json", "target_vocab.json"][: 1 + separate]
    longest = max(len(dict.fromkeys(side)) for side in sides)
    for name, side in zip(names, sides, strict=False):
        pieces = list(dict.fromkeys(side))
        pieces += [f"filler{n}" for n in range(longest - len(pieces))]
        ids = {p: n for n, p in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
        (path / name).write_text(json.dumps(ids))
    tokenizer = MarianTokenizer(
        source_spm=str(path / "source.spm"),
        target_spm=str(path / "target.spm"),
        vocab=str(path / "vocab.json"),
        target_vocab_file=str(path / "target_vocab.json") if separate else None,
        separate_vocabs=separate,
        source_lang="en",
        target_lang="pt",
    )
    size = longest + 3
    settings = {
        **SIZES,
        "vocab_size": size,
        "decoder_vocab_size": size,
        "activation_function": "swish",
        "scale_embedding": True,
        "pad_token_id": size - 1,
        "decoder_start_token_id": size - 1,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "share_encoder_decoder_embeddings": not separate,
        **config,
    }
    torch.manual_seed(seed)
    model = lively(MarianMTModel(MarianConfig(**settings)), seed, sharpness)
    model.generation_config.bad_words_ids = [[size - 1]]
    model.generation_config.renormalize_logits = True
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return model, tokenizer


def save_m2m100(
    path: Path, *, seed: int = 5, sharpness: float = 1.0, **config: Any
) -> tuple[M2M100ForConditionalGeneration, M2M100Tokenizer]:
    path.mkdir(parents=True, exist_ok=True)
    model = sentencepiece_model("bpe")
    (path / "sentencepiece.bpe.model").write_bytes(model)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    ids = {piece: n for n, piece in enumerate([*special, *pieces_of(model)])}
    (path / "vocab.json").write_text(json.dumps(ids))
    tokenizer = M2M100Tokenizer(
        str(path / "vocab.json"), str(path / "sentencepiece.bpe.model"), src_lang="en"
    )
    size = len(ids) + 100 + 8
    settings = {**SIZES, "vocab_size": size, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}
    torch.manual_seed(seed)
    torch_model = M2M100ForConditionalGeneration(M2M100Config(**{**settings, **config}))
    torch_model = lively(torch_model, seed, sharpness)
    torch_model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return torch_model, tokenizer


FAMILIES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "marian": save_marian,
    "m2m100": save_m2m100,
}
"""What saves a model of each family; returns the model and its tokenizer."""
