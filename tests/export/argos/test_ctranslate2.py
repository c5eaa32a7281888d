"""CTranslate2 itself, where it is installed, beside what was imported from the same package."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman_export.argos.importer import ImportSettings, read_origin
from dragoman_training.data.batch import pad_sources
from dragoman_training.translate.search import greedy_search
from support.argos_models import KINDS, ROOT_NAME, save_package, tokens_of

LIMIT = 32
ctranslate2: Any = pytest.importorskip("ctranslate2")


@pytest.mark.parametrize("quantisation", ["float32", "float16", "int16", "int8"])
@pytest.mark.parametrize("name", KINDS)
def test_ctranslate2_gives_our_ids(tmp_path: Path, name: str, quantisation: str) -> None:
    kind = KINDS[name]
    package = save_package(tmp_path / "model.argosmodel", kind, quantisation)
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    translator = ctranslate2.Translator(
        str(tmp_path / ROOT_NAME / "model"), compute_type="float32", intra_threads=1
    )
    origin = read_origin(package, ImportSettings())
    ends = origin.ends
    read, written = tokens_of(kind, "source"), tokens_of(kind, "target")
    generator = torch.Generator().manual_seed(5)
    for _ in range(20):
        length = int(torch.randint(1, 12, (), generator=generator))
        source = torch.randint(len(kind.special), len(read), (length,), generator=generator)
        batch = pad_sources(
            [source.tolist()], torch.device("cpu"), ends.end if ends.ends_source else None
        )
        (ours,) = greedy_search(origin.model, *batch, [LIMIT], alpha=0.0, ends=ends)
        (theirs,) = translator.translate_batch(
            [[read[token] for token in source.tolist()]],
            beam_size=1,
            max_decoding_length=LIMIT - 1,
            min_decoding_length=0,
            return_scores=True,
            length_penalty=0,
        )
        assert [written[token] for token in ours.ids] == theirs.hypotheses[0]
        if len(ours.ids) < LIMIT - 1:  # there ours has an end, and theirs has none
            assert ours.log_prob == pytest.approx(theirs.scores[0], abs=1e-4)
