"""Tokenized text: made as Multi30k's own script makes it, and measured as it is."""

import gzip
import json
import re
from pathlib import Path

import pytest
import sacrebleu

from dragoman_training.data.text.moses import MosesWords
from dragoman_training.errors import CorpusError
from dragoman_training.files import staged_file
from dragoman_training.translate.evaluation import measure
from support.checkpoints import checkpoint_of
from support.command import dragoman
from support.models import tiny_model
from support.training_runs import metrics, one_line, train


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "The man's dog, Rex, is 5,300 m away.", "the man 's dog , rex , is 5,300 m away ."),
        ("en", "“Quoted” — it’s\u00a0so…", '" quoted " - it \'s so ...'),
        ("en", "Mr. Smith isn't here (yet) & [so]!", "mr. smith isn 't here ( yet ) & [ so ] !"),
        ("de", "Ein Über-Mann, z. B. „so“.", 'ein über-mann , z. b. " so " .'),
        ("fr", "L'homme   d’ici", "l' homme d' ici"),
        ("pt-BR", "Olá,\tmundo!", "olá , mundo !"),
        ("en", "", ""),
        ("en", "  \t ", ""),
        ("en", "one\u2028two", "one two"),
    ],
)
def test_words_are_those_of_moses(language: str, text: str, expected: str) -> None:
    assert MosesWords(language, lowercase=True)(text) == expected


def test_case_is_kept_unless_asked_for() -> None:
    assert MosesWords("de", lowercase=False)("Ein Hund, GROẞ.") == "Ein Hund , GROẞ ."


def test_a_language_without_rules_is_refused() -> None:
    """Not treated as English."""
    with pytest.raises(CorpusError, match=r"--language german: Moses has rules for .*, de, "):
        MosesWords("german", lowercase=False)


@pytest.mark.parametrize("packed_in", [True, False])
@pytest.mark.parametrize("packed_out", [True, False])
def test_the_command_writes_a_line_for_each(
    tmp_path: Path, packed_in: bool, packed_out: bool
) -> None:
    lines = ["Ein Mann, der läuft.", "", 'Er sagt: "Ja!"', *["Und so weiter ..."] * 1500]
    content = "\n".join(lines).encode()
    source, output = tmp_path / "in", tmp_path / ("out.gz" if packed_out else "out")
    source.write_bytes(gzip.compress(content) if packed_in else content)
    arguments = ("tokenize", "--language", "de", "--lowercase", source, output)
    code, stdout, stderr = dragoman(*arguments)
    assert (code, stdout) == (0, ""), stderr
    assert stderr == f"1,503 lines in {output}\n"
    written = output.read_bytes()
    assert (written[:2] == b"\x1f\x8b") == packed_out
    text = (gzip.decompress(written) if packed_out else written).decode()
    assert text.splitlines()[:3] == ["ein mann , der läuft .", "", 'er sagt : " ja ! "']
    assert text.count("\n") == 1503
    assert dragoman(*arguments)[0] == 0
    assert output.read_bytes() == written  # no time is in it
    assert sorted(tmp_path.iterdir()) == sorted([source, output])


@pytest.mark.parametrize(
    ("damage", "message", "code"),
    [
        ("missing", "{source}: no such file", 2),
        ("latin", "{source}: line 2501: not UTF-8 (byte 0xe4)", 2),
        ("gzip", "{source}: damaged gzip file", 2),
        ("empty", "{source}: empty", 2),
        ("language", "--language xx: Moses has rules for as, bn,", 2),
        ("output", "{output}: not a file in a directory that exists", 1),
    ],
)
def test_bad_input_is_one_line_and_leaves_the_old_file(
    tmp_path: Path, damage: str, message: str, code: int
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    good = b"ein mann\n" * 2500
    content = {"latin": good + b"l\xe4uft\n", "gzip": gzip.compress(good)[:-20], "empty": b""}
    if damage != "missing":
        source.write_bytes(content.get(damage, good))
    output.write_text("old")
    if damage == "output":
        output = tmp_path / "none" / "out"
    language = "xx" if damage == "language" else "de"
    line = one_line(dragoman("tokenize", "--language", language, source, output), code)
    assert line.startswith(message.format(source=source, output=output))
    assert (tmp_path / "out").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} <= {"in", "out"}


def test_a_file_is_staged(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)

    def fail(half: bytes) -> None:
        with staged_file(link) as file:
            file.write(half)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail(b"half")
    assert path.read_bytes() == b"old"
    with staged_file(link) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [path, link]


REFERENCES = ["a man 's dog , which is red .", "the 5,300 - m run isn 't over ..."]
TRANSLATIONS = ["a man 's cat , which is red .", "the 5,300 - m run isn 't over ..."]


def test_bleu_of_tokenized_text_takes_words_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    quality = measure(TRANSLATIONS * 100, REFERENCES * 100, "de", tokenized=True)
    expected = sacrebleu.corpus_bleu(
        TRANSLATIONS * 100, [REFERENCES * 100], tokenize="none", force=True
    )
    assert quality.bleu == expected.score
    assert "|tok:none|" in quality.bleu_signature
    plain = measure(TRANSLATIONS, REFERENCES, "de")
    assert "|tok:13a|" in plain.bleu_signature
    assert abs(plain.bleu - quality.bleu) > 0.1
    assert plain.chrf == pytest.approx(quality.chrf)
    assert not caplog.records  # sacrebleu has its doubts about tokenized text


@pytest.mark.parametrize("trained_on", [True, False, None])
def test_evaluate_knows_how_the_model_was_trained(tmp_path: Path, trained_on: bool | None) -> None:
    model = tiny_model(vocabulary=320)
    recipe = {"data": {} if trained_on is None else {"tokenized": trained_on}}
    checkpoint_of(model, recipe=recipe).save(tmp_path / "c")
    text = tmp_path / "text"
    text.write_text("the house , over there .\n")

    def signature(*options: str) -> str:
        files = ("--source", text, "--reference", text)
        code, stdout, stderr = dragoman("evaluate", tmp_path / "c", *files, "--json", *options)
        assert code == 0, stderr
        found = re.search(r"tok:\w+", json.loads(stdout)["bleu_signature"])
        assert found is not None
        return found.group()

    assert signature() == ("tok:none" if trained_on else "tok:13a")
    assert signature("--tokenized") == "tok:none"
    assert signature("--no-tokenized") == "tok:13a"


RECIPE = """
[toy]
train = 200
valid = 20
test = 10

[data]
max_tokens = 32
tokenized = true

[tokenizer]
vocabulary = 300

[model]
preset = "tiny"
max_length = 32

[training]
max_steps = 1
"""


def test_validation_measures_tokenized_text_as_it_is(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE)
    assert train(recipe, tmp_path / "run")[0] == 0
    (validation,) = (r for r in metrics(tmp_path / "run") if r["kind"] == "validation")
    assert "|tok:none|" in validation["bleu_signature"]
