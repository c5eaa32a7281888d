"""Translating text and measuring it, in process and through the command."""

import gzip
import json
from pathlib import Path

import pytest
import sacrebleu

from dragoman_training.errors import CorpusError
from dragoman_training.models.transformer import Transformer
from dragoman_training.translate.evaluation import measure, translate
from support.checkpoints import checkpoint_of
from support.command import dragoman
from support.models import tiny_model
from support.tokenizers import PAIR

TEXTS = ["the house is there", "", "over", "  ", "the goat of number 7 is over there"]


def model() -> Transformer:
    return tiny_model(vocabulary=320)


def test_translations_come_in_the_order_of_the_texts() -> None:
    translations = translate(model(), PAIR, TEXTS, beam=3)
    assert len(translations) == len(TEXTS)
    for text, translation in zip(TEXTS, translations, strict=True):
        if not text.strip():
            assert translation.text == text
            continue
        (alone,) = translate(model(), PAIR, [text], beam=3)
        assert alone.text == translation.text
        assert translation.text == PAIR.target.decode(translation.hypothesis.ids)


def test_progress_is_reported_to_the_end() -> None:
    done: list[int] = []
    translate(model(), PAIR, ["the house"] * 2000, watch=done.append)
    assert done == sorted(done)
    assert done[-1] == 2000
    assert len(done) > 1


def test_a_sentence_above_the_limit_is_an_error_and_not_cut() -> None:
    with pytest.raises(CorpusError, match=r"sentence 2 has .* tokens, .* takes at most 40"):
        translate(model(), PAIR, ["the house", "the house is over there " * 20])


def test_measures_are_sacrebleus() -> None:
    translations = ["the cat sat on the mat", "a b c d e"]
    references = ["the cat sat on a mat", "a b c d e"]
    quality = measure(translations, references, "pt-BR")
    assert quality.bleu == sacrebleu.corpus_bleu(translations, [references]).score
    assert quality.chrf == sacrebleu.corpus_chrf(translations, [references]).score
    assert quality.exact == 50.0
    assert quality.bleu_signature.startswith(
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )


def test_bleu_knows_that_chinese_has_no_spaces() -> None:
    text = ["我们明天早上去北京看朋友"]
    almost = ["我们明天早上去上海看朋友"]
    assert measure(almost, text, "").bleu < 1
    quality = measure(almost, text, "zh")
    assert quality.bleu > 50
    assert "tok:zh" in quality.bleu_signature


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    checkpoint_of(model()).save(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def test_the_command_measures_and_writes(checkpoint: Path, tmp_path: Path) -> None:
    source, reference, output = (tmp_path / name for name in ("s.gz", "reference", "output"))
    source.write_bytes(gzip.compress("\n".join(TEXTS).encode()))
    reference.write_text("\n".join(TEXTS))
    files = ("--source", source, "--reference", reference)
    flags = ("--beam-size", "2", "--threads", "3", "--output", output, "--json")
    run = dragoman("evaluate", checkpoint, *files, *flags)
    assert run.returncode == 0, run.stderr
    expected = [t.text for t in translate(model(), PAIR, TEXTS, beam=2)]
    assert output.read_text() == "".join(text + "\n" for text in expected)
    figures = json.loads(run.stdout)
    assert figures["bleu"] == measure(expected, TEXTS, "").bleu
    assert (figures["sentences"], figures["beam"], figures["threads"]) == (5, 2, 3)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("checkpoint", "neither a checkpoint nor a run with one"),
        ("source", "no such file"),
        ("lines", "has 1 lines but"),
        ("output", "not a file in a directory that exists"),
    ],
)
def test_bad_input_is_one_line(checkpoint: Path, tmp_path: Path, damage: str, message: str) -> None:
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("the house\n")
    reference.write_text("the house\n" * (2 if damage == "lines" else 1))
    if damage == "source":
        source.unlink()
    where = tmp_path / "elsewhere" if damage == "checkpoint" else checkpoint
    output = tmp_path / ("none/output" if damage == "output" else "output")
    run = dragoman(
        "evaluate", where, "--source", source, "--reference", reference, "--output", output
    )
    assert run.returncode == (1 if damage == "output" else 2)
    assert len(run.stderr.splitlines()) == 1
    assert message in run.stderr
    assert not output.exists()
