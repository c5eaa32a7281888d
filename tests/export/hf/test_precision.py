"""Imported models in int8 and float16, through the command and behind the real server.

Random weights would not do: they are never sure of what they say, so that int8 says something else.
These models of transformers have learnt a few sentences by heart.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman_client import Client, Options
from dragoman_export.errors import ExportError
from dragoman_export.hf_commands import import_hf
from dragoman_server.bundle.reading import read_bundle
from support.hf_models import FAMILIES, sentences
from support.service_running import few_rows, serving, settings_for

PLAIN = Options(split_sentences=False, keep_untranslatable=False, mend=False)
SOURCES = [" ".join(re.findall(r"\w+", text)) for text in sentences(16, seed=11)]
REFERENCES = [" ".join(reversed(text.split())) for text in SOURCES]


def save_learnt(family: str, path: Path) -> None:
    """A directory of a model that says REFERENCES in Portuguese for SOURCES in English."""
    model, tokenizer = FAMILIES[family](path)
    torch.manual_seed(1)
    model = type(model)(model.config)  # begins with the weights that transformers begins with
    if family == "m2m100":
        tokenizer.src_lang, tokenizer.tgt_lang = "en", "pt"
    before = ">>por<< " if family == "marian" else ""
    batch: Any = tokenizer(
        [before + text for text in SOURCES],
        text_target=REFERENCES,
        padding=True,
        return_tensors="pt",
    )
    batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(80):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    model.save_pretrained(path)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models as transformers saves them, and the text to measure on."""
    path = tmp_path_factory.mktemp("precision")
    for family in FAMILIES:
        save_learnt(family, path / family)
    for name, lines in (("source", SOURCES), ("reference", REFERENCES)):
        (path / name).write_text("".join(line + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("precision", "is_listed"), [("int8", False), ("int8", True), ("float16", False)]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_imported_model_says_the_same(
    directory: Path, family: str, precision: str, is_listed: bool, tmp_path: Path
) -> None:
    import_hf(
        directory / family,
        tmp_path / "bundle",
        precision=precision,
        source_language=["en"],
        target_language=["pt"],
        source=directory / "source",
        reference=directory / "reference",
        shortlist_source=directory / "source" if is_listed else None,
        shortlist_target=directory / "reference" if is_listed else None,
    )
    manifest = read_bundle(tmp_path / "bundle").manifest
    assert manifest.precision == precision
    assert bool(manifest.shortlist) == is_listed
    assert manifest.quality["token_agreement"] >= 0.99
    settings = settings_for(tmp_path / "bundle", engine=few_rows(8))
    with serving(settings) as running, Client(running.server.address) as client:
        found = client.translate_batch(
            SOURCES, source_language="en", target_language="pt", options=PLAIN
        )
    assert [each.text for each in found] == REFERENCES


def test_a_shortlist_is_for_one_pair_of_languages(directory: Path, tmp_path: Path) -> None:
    """Of another language, it would have the wrong tokens."""
    with pytest.raises(ExportError, match="several target languages: choose one"):
        import_hf(
            directory / "marian",
            tmp_path / "bundle",
            precision="int8",
            source_language=["en"],
            source=directory / "source",
            reference=directory / "reference",
            shortlist_source=directory / "source",
            shortlist_target=directory / "reference",
        )
    assert list(tmp_path.iterdir()) == []
