"""Whether int8 translates worse than float32, decided by a paired bootstrap on text with a name."""

import dataclasses
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dragoman_export.errors import VerificationError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.graphs.precision import Int8
from dragoman_export.proofs.bootstrap import bleu_lost_interval
from dragoman_export.proofs.quality import check_quality, compare_quality
from dragoman_export.source import origin_of
from dragoman_export.texts import read_sample, read_sample_of_run
from dragoman_server.bundle.reading import Bundle
from dragoman_server.cli.describe import describe
from dragoman_training.translate.evaluation import measure
from support.bundles import SAMPLE, ignore, trained_bundle, trained_model
from support.checkpoints import checkpoint_of

WORDS = ["casa", "livro", "sol", "mar", "rua", "gato", "voz", "luz", "dia", "noite", "rio", "vento"]


def sentences(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(count)]


def with_errors(references: Sequence[str], share: float, seed: int) -> list[str]:
    """Replace the last but one word of a share of the sentences."""
    rng = random.Random(seed)
    return [
        " ".join((*text.split()[:-2], "erro", text.split()[-1])) if rng.random() < share else text
        for text in references
    ]


def bleu(translations: list[str], references: list[str]) -> float:
    return measure(translations, references, "pt").bleu


def test_the_interval_holds_the_loss_and_is_the_same_each_time() -> None:
    references = sentences(300)
    plain, ours = with_errors(references, 0.2, 1), with_errors(references, 0.4, 2)
    lost = bleu(plain, references) - bleu(ours, references)
    low, high = bleu_lost_interval(ours, plain, references, "pt")
    assert 0 < low < lost < high
    assert (low, high) == bleu_lost_interval(ours, plain, references, "pt")
    # Of the same share of errors, in other sentences, one is not worse than the other.
    low, high = bleu_lost_interval(with_errors(references, 0.2, 3), plain, references, "pt")
    assert low < 0 < high
    assert bleu_lost_interval(plain, plain, references, "pt") == (0.0, 0.0)


def test_more_sentences_make_it_narrower() -> None:
    widths = []
    for count in (50, 1500):
        references = sentences(count)
        low, high = bleu_lost_interval(
            with_errors(references, 0.3, 2), with_errors(references, 0.3, 1), references, "pt"
        )
        widths.append(high - low)
    assert widths[1] < widths[0] / 3


def judge(ours: list[str], plain: list[str], references: list[str], max_lost: float) -> None:
    """Judge an int8 bundle by what two precisions made of a text; ids are words, to be short."""
    ids = {word: number for number, word in enumerate([*WORDS, "erro"])}
    words = {number: word for word, number in ids.items()}
    ours_ids, plain_ids = (
        [tuple(ids[word] for word in text.split()) for text in side] for side in (ours, plain)
    )
    quality = compare_quality(
        ours_ids,
        plain_ids,
        references,
        lambda each: " ".join(words[number] for number in each),
        "pt",
        "book.en and book.pt",
    )
    check_quality(trained_bundle("int8").manifest, quality, max_lost)


def test_chance_is_no_reason_to_refuse_int8() -> None:
    """More than 0.3 BLEU on 60 sentences, which the next 60 might give back."""
    references = sentences(60)
    plain = with_errors(references, 0.2, 1)
    ours = list(plain)
    ours[7] = with_errors([references[7]], 1.0, 1)[0]
    ours[9] = with_errors([references[9]], 1.0, 1)[0]
    assert bleu(plain, references) - bleu(ours, references) > 0.3
    judge(ours, plain, references, 0.3)


def test_a_loss_that_is_no_chance_is_refused_with_its_interval() -> None:
    references = sentences(300)
    plain, ours = with_errors(references, 0.1, 1), with_errors(references, 0.5, 2)
    with pytest.raises(VerificationError) as told:
        judge(ours, plain, references, 0.3)
    message = str(told.value)
    assert "on 300 sentences of book.en and book.pt" in message
    assert "with 95% confidence between " in message
    assert "at most 0.3 is allowed" in message
    assert message.endswith("--max-bleu-lost")
    judge(ours, plain, references, 99.0)


def test_a_bundle_that_loses_is_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its output weights are garbled, as by a fault of quantisation."""
    right = Int8.linear

    def wrong(self: Int8, g: Any, x: str, weights: Any, **kind: bool) -> str:
        if weights.name == "projection":
            weights = dataclasses.replace(weights, matrix=-weights.matrix)
        return right(self, g, x, weights, **kind)

    monkeypatch.setattr(Int8, "linear", wrong)
    origin = origin_of(checkpoint_of(trained_model()))
    settings = ExportSettings(name="x", precision="int8")
    with pytest.raises(VerificationError, match=r"int8 loses .* of the given text"):
        export_bundle(origin, tmp_path / "b", settings, SAMPLE, ignore)
    assert list(tmp_path.iterdir()) == []


def test_the_bundle_names_the_text_and_the_interval() -> None:
    quality = json.loads((trained_bundle("int8").path / "manifest.json").read_text())["quality"]
    assert quality["text"] == "the given text"
    assert quality["max_bleu_lost"] == 0.3
    low, high = quality["bleu_lost_interval"]
    assert low <= quality["bleu_float32"] - quality["bleu"] <= high


def test_people_are_told_the_text_and_how_sure_the_loss_is() -> None:
    bundle = trained_bundle("int8")
    shown = described(bundle)
    assert f"{len(SAMPLE.sources)} sentences of the given text" in shown
    assert "BLEU lost: " in shown
    assert "more sentences would tell" not in shown
    quality = {**bundle.manifest.quality, "bleu": 30.0, "bleu_float32": 30.5}
    quality["bleu_lost_interval"] = [-0.2, 1.2]
    manifest = dataclasses.replace(bundle.manifest, quality=quality)
    assert (
        "BLEU lost: 0.50, with 95% confidence between -0.20 and 1.20: more sentences would tell"
        in described(dataclasses.replace(bundle, manifest=manifest))
    )


def described(bundle: Bundle) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(describe(bundle))
    return captured.get()


def test_a_threshold_must_make_sense() -> None:
    with pytest.raises(ValueError, match="max_bleu_lost is -1"):
        ExportSettings(name="x", precision="int8", max_bleu_lost=-1)


def test_a_sample_has_the_names_of_its_files(tmp_path: Path) -> None:
    source, reference = tmp_path / "book.en", tmp_path / "book.pt"
    source.write_text("a\n")
    reference.write_text("b\n")
    sample = read_sample(source, reference, 10, None)
    assert sample is not None
    assert sample.name == "book.en and book.pt"


def test_the_validation_texts_of_a_run_are_found_and_take_turns(tmp_path: Path) -> None:
    assert read_sample_of_run(tmp_path, 10, None) is None
    data = tmp_path / "data"
    for name, lines in (("news", 3), ("talks", 1)):
        (data / "valid" / name).mkdir(parents=True)
        for side in ("source", "target"):
            text = "".join(f"{name} {side} {number}\n" for number in range(lines))
            (data / "valid" / name / side).write_text(text)
    (data / "prepared.json").write_text(json.dumps({"valid": ["news", "talks"]}))
    sample = read_sample_of_run(tmp_path, 3, None)
    assert sample is not None
    assert sample.sources == ["news source 0", "talks source 0", "news source 1"]
    assert sample.references[1] == "talks target 0"
    assert sample.calibration == ["news source 2"]
    assert sample.name == "the run's validation texts"
