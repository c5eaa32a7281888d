"""Text to ids and back as transformers' own tokenizers do it."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AddedToken, NllbTokenizer
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as CODES

from dragoman_export.hf.importer import ImportSettings, read_origin
from dragoman_export.source import Origin
from dragoman_server.text.vocabulary import MappedVocabulary
from support.hf_models import pieces_of, save_m2m100, save_marian, sentencepiece_model, strings

STRINGS = strings()


def expected(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Without the end token."""
    return [ids[:-1] for ids in tokenizer(texts)["input_ids"]]


def encoded(origin: Origin) -> list[list[int]]:
    return [[*origin.before, *ids] for ids in origin.source.encode_all(STRINGS)]


def assert_decodes_alike(origin: Origin, tokenizer: Any) -> None:
    """Tokens that are no text are shown by neither."""
    special = {*tokenizer.all_special_ids}
    for ids in origin.source.encode_all(STRINGS[::5]):
        shown = [token for token in ids if token not in special]
        theirs = tokenizer.decode(shown, skip_special_tokens=True, use_source_tokenizer=False)
        assert origin.target.decode(shown).split() == theirs.split()


def test_marian_with_the_token_of_a_language(tmp_path: Path) -> None:
    assert len(STRINGS) == 500
    _, tokenizer = save_marian(tmp_path)
    for tag, token in (("pt", ">>por<<"), ("zh", ">>cmn_Hans<<"), ("pt-BR", ">>pt_br<<")):
        origin = read_origin(tmp_path, ImportSettings(target_languages=[tag]))
        assert encoded(origin) == expected(tokenizer, [f"{token} {text}" for text in STRINGS])
    assert isinstance(origin.target, MappedVocabulary)
    portuguese = tokenizer.convert_tokens_to_ids(">>por<<")
    assert isinstance(portuguese, int)
    assert origin.target.decode([portuguese, 0]) == ""


@pytest.mark.parametrize("separate", [False, True])
def test_marian_of_one_pair(tmp_path: Path, separate: bool) -> None:
    _, tokenizer = save_marian(tmp_path, separate=separate, languages=())
    origin = read_origin(tmp_path, ImportSettings())
    assert encoded(origin) == expected(tokenizer, STRINGS)
    theirs = tokenizer(text_target=STRINGS)["input_ids"]
    assert [[*ids, 0] for ids in origin.target.encode_all(STRINGS)] == theirs
    assert_decodes_alike(origin, tokenizer)
    told = origin.manifest
    assert (told["source_language"], told["target_language"]) == ("en", "pt")
    assert not told["target_languages"]


def test_m2m100(tmp_path: Path) -> None:
    _, tokenizer = save_m2m100(tmp_path)
    for source, target in (("en", "pt"), ("pt", "en"), ("zh", "ast")):
        settings = ImportSettings(source_languages=[source], target_languages=[target])
        origin = read_origin(tmp_path, settings)
        tokenizer.src_lang = source
        assert encoded(origin) == expected(tokenizer, STRINGS)
        assert origin.start == (tokenizer.get_lang_id(target),)
    assert_decodes_alike(origin, tokenizer)
    everything = read_origin(tmp_path, ImportSettings()).manifest["source_languages"]
    assert everything == tokenizer.lang_code_to_id


def save_nllb(path: Path) -> NllbTokenizer:
    """An M2M-100 model with the tokenizer that transformers makes of NLLB's SentencePiece model."""
    pieces = pieces_of(sentencepiece_model("bpe"))
    save_m2m100(path, vocab_size=4 + len(pieces) + len(CODES) + 1)
    (path / "vocab.json").unlink()
    (path / "tokenizer_config.json").unlink()
    # As in the files of NLLB; left to itself, transformers would put the mask first.
    added = dict(enumerate([*CODES, "<mask>"], start=4 + len(pieces)))
    tokenizer = NllbTokenizer.from_pretrained(
        path,
        extra_special_tokens=CODES,
        added_tokens_decoder={token: AddedToken(name) for token, name in added.items()},
    )
    tokenizer.save_pretrained(path)
    return tokenizer


def test_nllb(tmp_path: Path) -> None:
    tokenizer = save_nllb(tmp_path)
    # White space, or its mark, at the end is a token there, but not in the text that NLLB learnt
    # from, which SentencePiece cut.
    trimmed = [text.rstrip(" \t\n▁") for text in STRINGS]
    assert sum(a != b for a, b in zip(trimmed, STRINGS, strict=True)) == 11
    for source, target, tag in (("eng_Latn", "por_Latn", "pt"), ("zho_Hant", "eng_Latn", "en")):
        settings = ImportSettings(
            source_languages=[source.replace("_", "-")], target_languages=[tag]
        )
        origin = read_origin(tmp_path, settings)
        tokenizer.src_lang = source
        assert origin.start == (tokenizer.convert_tokens_to_ids(target),)
        assert encoded(origin) == expected(tokenizer, trimmed)
    assert_decodes_alike(origin, tokenizer)
    assert len(read_origin(tmp_path, ImportSettings()).manifest["source_languages"]) == 202
    (tmp_path / "tokenizer.json").unlink()  # as from SentencePiece's model alone
    config = tmp_path / "tokenizer_config.json"  # and as older versions named it
    config.write_text(config.read_text().replace("extra_special", "additional_special"))
    again = read_origin(tmp_path, settings)
    assert (again.before, again.start) == (origin.before, origin.start)
    assert encoded(again) == encoded(origin)
