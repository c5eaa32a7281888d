"""Our checkpoints in the form of MarianMT and M2M-100: the same ids there, and back again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, M2M100ForConditionalGeneration, MarianMTModel

from dragoman_export.errors import ExportError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.hf.exporter import old_ids, write_directory
from dragoman_export.hf.importer import ImportSettings, read_origin
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import beam, greedy
from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.translate.search import beam_search, default_limit
from support.bundles import TEXTS, ignore, seeded_model, teach
from support.checkpoints import checkpoint_of
from support.tokenizers import TRAINED

CPU = torch.device("cpu")
JOINT = TokenizerPair(TRAINED["unigram"], TRAINED["unigram"])
APART = TokenizerPair(TRAINED["unigram"], TRAINED["bpe"])
SOURCES = [JOINT.source.encode(text) for text in TEXTS]
LIMITS = [default_limit(len(source), 40) for source in SOURCES]
CLASSES: dict[str, Any] = {"marian": MarianMTModel, "m2m_100": M2M100ForConditionalGeneration}
POST: list[dict[str, Any]] = [
    {"norm": "post", "tied_embeddings": "all", "activation": "relu"},
    {"norm": "post", "tied_embeddings": "target", "activation": "swish", "output_bias": True},
    {"norm": "post", "tied_embeddings": "none", "positions": "learned", "scale_embeddings": False},
    {"norm": "post", "tied_embeddings": "all", "decoder_start": "zero"},
]
PRE: dict[str, Any] = {"norm": "pre", "tied_embeddings": "all", "positions": "m2m100"}


def checkpoint(tokenizers: TokenizerPair = JOINT, **settings: Any) -> Checkpoint:
    """Of a model that knows a few sentences by heart: a random one would say padding."""
    model = seeded_model(**settings)
    teach(model, tokenizers, steps=60)
    return checkpoint_of(model, tokenizers)


def ours(made: Checkpoint, size: int) -> list[tuple[int, ...]]:
    model = made.build_model().eval()
    found = beam_search(model, *pad_sources(SOURCES, CPU), LIMITS, size)
    return [hypotheses[0].ids for hypotheses in found]


def theirs_of(ids: Sequence[int], family: str, size: int = 320) -> list[int]:
    places = {old: new for new, old in enumerate(old_ids(family, size))}
    return [places[token] for token in ids]


@pytest.mark.parametrize(
    "settings",
    [
        POST[0],
        *(pytest.param(each, marks=pytest.mark.slow) for each in (*POST[1:], PRE)),
    ],
    ids=str,
)
def test_transformers_and_import_give_our_ids(settings: dict[str, Any], tmp_path: Path) -> None:
    made = checkpoint(**settings)
    name = write_directory(made, tmp_path / "hf")
    family = json.loads((tmp_path / "hf" / "config.json").read_text())["model_type"]
    model = CLASSES[family].from_pretrained(tmp_path / "hf").eval()
    assert type(model).__name__ == name
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    origin = read_origin(tmp_path / "hf", ImportSettings())
    export_bundle(origin, tmp_path / "bundle", ExportSettings(name="x"), None, ignore)
    graphs = Graphs(read_bundle(tmp_path / "bundle"), GraphSettings(rows=len(TEXTS)))
    again = origin.encode(TEXTS)
    for number, source in enumerate(SOURCES):
        length = int(inputs["attention_mask"][number].sum())
        assert inputs["input_ids"][number, : length - 1].tolist() == again[number]
        assert again[number] == theirs_of(source, family)
    for size in (1, 4):
        expected = [theirs_of(ids, family) for ids in ours(made, size)]
        assert len({tuple(ids) for ids in expected}) > 5
        out = model.generate(**inputs, num_beams=size, max_length=40)
        for line, ids in zip(out[:, 1:].tolist(), expected, strict=True):
            assert line[: len(ids) + 1] == [*ids, model.config.eos_token_id]
        texts = tokenizer.batch_decode(out, skip_special_tokens=True)
        assert texts == [JOINT.target.decode(ids) for ids in ours(made, size)]
        found = (
            greedy(graphs, again, LIMITS)
            if size == 1
            else [beam(graphs, s, n, size)[0] for s, n in zip(again, LIMITS, strict=True)]
        )
        assert [list(each.ids) for each in found] == expected


@pytest.mark.slow
@pytest.mark.parametrize("settings", [*POST, PRE], ids=str)
def test_ctranslate2_converts_it_and_gives_our_ids(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    converters = pytest.importorskip("ctranslate2.converters")
    import ctranslate2

    made = checkpoint(**settings)
    write_directory(made, tmp_path / "hf")
    family = json.loads((tmp_path / "hf" / "config.json").read_text())["model_type"]
    converters.TransformersConverter(str(tmp_path / "hf")).convert(str(tmp_path / "ct2"))
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    sources = [tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) for text in TEXTS]
    for size in (1, 4):
        # It would stop when as many have ended as the beam is wide; ours goes on while one can win.
        results = translator.translate_batch(
            sources,
            beam_size=size,
            length_penalty=1,
            patience=8 if size > 1 else 1,
            max_decoding_length=30,
        )
        found = [tokenizer.convert_tokens_to_ids(each.hypotheses[0]) for each in results]
        assert found == [theirs_of(ids, family) for ids in ours(made, size)]


def test_two_vocabularies_are_two_files(tmp_path: Path) -> None:
    made = checkpoint_of(seeded_model(norm="post", tied_embeddings="target"), APART)
    write_directory(made, tmp_path / "hf")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    origin = read_origin(tmp_path / "hf", ImportSettings())
    for text in TEXTS:
        (source,), (target,) = origin.source.encode_all([text]), origin.target.encode_all([text])
        assert [*source, 0] == tokenizer(text)["input_ids"]
        assert [*target, 0] == tokenizer(text_target=text)["input_ids"]
        assert list(target) == theirs_of(APART.target.encode(text), "marian")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"norm": "pre"}, "positions is 'sinusoidal', and its are fixed"),
        ({**PRE, "output_bias": True}, "output_bias is true"),
        ({**PRE, "tied_embeddings": "target"}, "M2M-100 has one matrix"),
        ({**PRE, "decoder_start": "zero"}, "M2M-100 begins with a token"),
        ({"norm": "post", "decoder": "ssru"}, "no class of transformers has such a decoder"),
    ],
)
def test_what_fits_no_class_is_refused(
    settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match=reason) as refused:
        write_directory(checkpoint_of(seeded_model(**settings), JOINT), tmp_path / "hf")
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_what_stands_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    made = checkpoint_of(seeded_model(norm="post"), JOINT)
    with pytest.raises(ExportError, match="not an empty directory"):
        write_directory(made, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
