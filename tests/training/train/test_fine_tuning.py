"""Training that begins with a model from elsewhere: it computes the same, and is exported again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.marian import importer as marian
from dragoman_export.marian.reference import MarianReference
from dragoman_export.source import origin_of
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_server.text.vocabulary_file import load_vocabularies
from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.data.batch import Batch
from dragoman_training.data.initial import with_initial_model
from dragoman_training.data.prepared import PreparedData
from dragoman_training.data.token_store import TokenPair
from dragoman_training.errors import CheckpointError, RecipeError
from dragoman_training.models.layout import Layout
from dragoman_training.report.records import Observer, ValidationRecord
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.train.provenance import config
from dragoman_training.train.run import train
from dragoman_training.train.trainer import Trainer
from dragoman_training.translate.evaluation import translate
from support.corpora import prepared
from support.hf_models import save_m2m100, save_marian
from support.hf_models import sentences as hf_sentences
from support.marian_models import END, UNKNOWN, MarianModel, sources, texts
from support.trainers import ALONE

FIREFOX = MarianModel(is_quantized=True, shortlist="bin")
KINDS = {
    "Firefox's": FIREFOX,
    "self-attention, norms before, two vocabularies": MarianModel(
        decoder="self-attention",
        norm="pre",
        activation="swish",
        form="npz",
        vocabularies=(120, 90),
        tied="target",
        seed=2,
    ),
}


def recipe_of(initial: Path, directory: Path, lines: list[str], **sections: Any) -> Recipe:
    """A recipe that says nothing of the model."""
    for side in ("en", "pt"):
        (directory / f"text.{side}").write_text("".join(f"{line}\n" for line in lines))
    source, target = (str(directory / f"text.{side}") for side in ("en", "pt"))
    table: dict[str, Any] = {
        "data": {
            "source_language": "en",
            "target_language": "pt",
            "train_source": [source],
            "train_target": [target],
            "max_tokens": 40,
            "validation": [{"name": "own", "source": [source], "target": [target]}],
        },
        "training": {
            "initial": str(initial),
            "max_steps": 2,
            "batch_tokens": 400,
            "schedule": "constant",
            "learning_rate": 1e-3,
            "warmup_steps": 1,
        },
        "validation": {"sentences": 6},
    }
    for name, section in sections.items():
        table[name] = {**table.get(name, {}), **section}
    return recipe_from_dict(with_initial_model(table))


def begun(initial: Path, directory: Path, lines: list[str]) -> tuple[Trainer, PreparedData]:
    recipe = recipe_of(initial, directory, lines)
    data = prepared(recipe, directory / "data")
    return Trainer(recipe, data, ALONE), data


def log_probs(trainer: Trainer, source: list[int], target: list[int]) -> Any:
    """What the model gives for a batch that is made as in training."""
    batch = Batch.of(
        [TokenPair(np.array(source), np.array(target))],
        torch.device("cpu"),
        trainer.data.tokenizers.ends,
    )
    model = trainer.model.eval()
    layout = Layout.of(batch.target_lengths_B)
    with torch.inference_mode():
        memory = model.encode(batch.source_BS, batch.source_lengths_B)
        hidden = model.decode(layout.pack(batch.input_BT), layout, memory)
        return model.projection(hidden).log_softmax(-1).numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_a_marian_directory_gives_the_probabilities_of_its_formulas(
    kind: str, tmp_path: Path
) -> None:
    directory = KINDS[kind].write(tmp_path / "marian")
    trainer, data = begun(directory, tmp_path, texts(20, seed=1))
    told = {key: str(value) for key, value in yaml.safe_load(KINDS[kind].yaml()).items()}
    reference = MarianReference(KINDS[kind].weights(), told, end=END, unknown=UNKNOWN)
    sizes = KINDS[kind].sizes
    (source,), (target,) = (
        sources(1, seed, size) for seed, size in zip((3, 4), sizes, strict=True)
    )
    found, expected = log_probs(trainer, source, target), reference.log_probs(source, target)
    others = np.arange(sizes[1]) != UNKNOWN
    assert np.isneginf(found[:, UNKNOWN]).all()
    np.testing.assert_allclose(found[:, others], expected[:, others], rtol=0, atol=2e-3)
    assert data.tokenizers.joint == (len(KINDS[kind].vocabularies) == 1)
    assert data.provenance["initial"]["imported"]["from"] == "Marian"


def test_a_transformers_directory_gives_the_probabilities_of_transformers(tmp_path: Path) -> None:
    theirs, tokenizer = save_marian(tmp_path / "hf", languages=())
    lines = hf_sentences(20, seed=3)
    trainer, data = begun(tmp_path / "hf", tmp_path, lines)
    assert data.tokenizers.source.encode_all(lines) == [
        tokenizer(line).input_ids[:-1] for line in lines
    ]
    source = tokenizer(lines[0]).input_ids[:-1]
    target = tokenizer(text_target=lines[1]).input_ids[:-1]
    found = log_probs(trainer, source, target)
    start = theirs.config.decoder_start_token_id
    with torch.no_grad():
        logits = theirs(
            input_ids=torch.tensor([[*source, theirs.config.eos_token_id]]),
            decoder_input_ids=torch.tensor([[start, *target]]),
        ).logits[0]
    logits[:, theirs.config.pad_token_id] = -torch.inf  # which generate never says
    expected = logits.log_softmax(-1).numpy()
    said = ~np.isneginf(expected)
    np.testing.assert_allclose(found[said], expected[said], rtol=0, atol=2e-4)
    assert data.tokenizers.target.decode(target) == lines[1]


def test_an_imported_int8_bundle_begins_where_its_model_is(tmp_path: Path) -> None:
    directory = FIREFOX.write(tmp_path / "marian")
    origin = marian.read_origin(directory, marian.ImportSettings())
    bundle = tmp_path / "bundle"
    settings = ExportSettings(name="firefox", precision="int8")
    export_bundle(origin, bundle, settings, None, lambda *_: None)
    trainer, data = begun(bundle, tmp_path, texts(20, seed=1))
    assert trainer.model.settings == origin.model.settings
    assert data.tokenizers.ends == origin.ends
    assert data.tokenizers.shortlist
    weights = dict(trainer.model.named_parameters())
    for name, expected in origin.model.named_parameters():
        found = weights[name].detach()
        finite = expected.isfinite()
        assert torch.equal(finite, found.isfinite()), name
        step = expected[finite].abs().max() / 63  # of seven bits
        assert (found - expected)[finite].abs().max() <= 0.51 * step, name


class Notes(Observer):
    """Remembers what was said and measured."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.records: list[ValidationRecord] = []

    def noted(self, message: str) -> None:
        self.notes.append(message)

    def validated(self, record: ValidationRecord) -> None:
        self.records.append(record)


def test_from_a_marian_directory_to_a_bundle_of_what_was_learnt(tmp_path: Path) -> None:
    """It keeps the vocabulary, the tokens around sentences, what is never said, the shortlist."""
    directory = FIREFOX.write(tmp_path / "marian")
    lines = [*texts(30, seed=1), "日本"]  # what the vocabulary can't spell, on both sides
    recipe = recipe_of(directory, tmp_path, lines, checkpoints={"initial_share": 0.25})
    seen = Notes()
    final = Checkpoint.load(train(recipe, tmp_path / "run", seen))
    assert [record.step for record in seen.records] == [0, 1, 2]
    assert any(note.startswith("BLEU since the model") and "own" in note for note in seen.notes)
    first = Checkpoint.load(tmp_path / "run" / "data" / "initial").weights
    (step,) = final.config["steps"]
    learnt = Checkpoint.load(tmp_path / "run" / "checkpoints" / f"step-{step:08d}").weights
    for name, weight in final.weights.items():
        finite = weight.isfinite()
        assert finite.all() or (name == "projection.bias" and (~finite).nonzero() == UNKNOWN)
        expected = 0.75 * learnt[name] + 0.25 * first[name]
        torch.testing.assert_close(weight[finite], expected[finite])
    assert final.config["began_with"] == {"own": seen.records[0].bleu}

    origin = origin_of(final)
    path = tmp_path / "bundle"
    export_bundle(origin, path, ExportSettings(name="own"), None, lambda *_: None)
    bundle = read_bundle(path)
    imported = marian.read_origin(directory, marian.ImportSettings())
    assert bundle.manifest.special_ids == imported.special
    assert bundle.manifest.ends_in_beam
    assert origin.shortlist is not None
    assert imported.shortlist is not None
    np.testing.assert_array_equal(origin.shortlist.likely, imported.shortlist.likely)
    source, target = load_vocabularies(bundle)
    some = source.encode_all(lines[:8])
    found = greedy(Graphs(bundle, GraphSettings(rows=8)), some, [2 * len(s) + 10 for s in some])
    ours = translate(final.build_model(), final.tokenizers, lines[:8])
    assert [target.decode(each.ids) for each in found] == [each.text for each in ours]


def test_a_language_of_several_is_told_by_its_token(tmp_path: Path) -> None:
    """Of OPUS-MT's kind: the token stands before the source."""
    save_marian(tmp_path / "hf", languages=(">>pt<<", ">>es<<"))
    lines = hf_sentences(12, seed=3)
    trainer, data = begun(tmp_path / "hf", tmp_path, lines)
    ends = data.tokenizers.ends
    assert data.tokenizers.source.pieces(ends.before) == [">>pt<<"]
    batch = Batch.of([data.train[0]], torch.device("cpu"), ends)
    assert batch.source_BS[0, 0] == ends.before[0]
    assert batch.input_BT[0, 0] == ends.begin
    trainer.update(stop=False)
    manifest = origin_of(trainer.snapshot(config(trainer, None))).manifest
    assert manifest["target_languages"] == {"pt": ends.before[0]}


def test_a_language_that_follows_the_begin_token_is_learnt_with_the_target(tmp_path: Path) -> None:
    """As M2M-100 and NLLB have it; a source begins with the token of its language."""
    theirs, tokenizer = save_m2m100(tmp_path / "hf")
    lines = hf_sentences(12, seed=3)
    trainer, data = begun(tmp_path / "hf", tmp_path, lines)
    ends = data.tokenizers.ends
    portuguese = tokenizer.get_lang_id("pt")
    assert (ends.before, ends.start) == ((tokenizer.get_lang_id("en"),), (portuguese,))
    pair = data.train[0]
    batch = Batch.of([pair], torch.device("cpu"), ends)
    assert batch.input_BT[0, :2].tolist() == [ends.begin, portuguese]
    assert batch.label_BT[0].tolist() == [portuguese, *pair.target, ends.end]
    with torch.no_grad():
        logits = theirs(input_ids=batch.source_BS, decoder_input_ids=batch.input_BT).logits[0]
    logits[:, theirs.config.pad_token_id] = -torch.inf
    expected = logits.log_softmax(-1).numpy()
    found = log_probs(trainer, list(pair.source), list(pair.target))
    said = ~np.isneginf(expected)
    np.testing.assert_allclose(found[said], expected[said], rtol=0, atol=2e-4)
    trainer.update(stop=False)


def test_forgetting_is_warned_of(tmp_path: Path) -> None:
    """A model that translates its own text begins to say something else."""
    directory = FIREFOX.write(tmp_path / "marian")
    lines = texts(30, seed=1)
    recipe = recipe_of(directory, tmp_path, lines)
    train(recipe, tmp_path / "first", Observer())
    model = Checkpoint.load(tmp_path / "first" / "final")
    said = [each.text for each in translate(model.build_model(), model.tokenizers, lines)]
    (tmp_path / "said").write_text("".join(f"{line}\n" for line in said))
    kept = {
        "name": "kept",
        "source": [str(tmp_path / "text.en")],
        "target": [str(tmp_path / "said")],
    }
    again = recipe_of(
        tmp_path / "first",
        tmp_path,
        lines,
        data={"validation": [kept]},
        training={"initial": str(tmp_path / "first"), "learning_rate": 0.1},
    )
    seen = Notes()
    train(again, tmp_path / "second", seen)
    assert seen.records[0].bleu == pytest.approx(100)
    assert [note for note in seen.notes if note.startswith("warning: the model forgets")]
    # What was learnt is worse than what was there, so that is the final model.
    assert Checkpoint.load(tmp_path / "second" / "final").config["steps"] == [0]


def test_what_can_not_be_begun_with_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"training.initial is .*nothing: no such file"):
        recipe_of(tmp_path / "nothing", tmp_path, ["a"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"empty: "):
        recipe_of(tmp_path / "empty", tmp_path, ["a"])
    directory = FIREFOX.write(tmp_path / "marian")
    recipe = recipe_of(directory, tmp_path, texts(5, seed=1), model={"width": 64})
    with pytest.raises(RecipeError, match=r"model.width is 64: .*marian, which .* has 32"):
        train(recipe, tmp_path / "run", Observer())
    assert not (tmp_path / "run").exists()
    table = recipe.to_dict()
    table["training"]["initial"], table["checkpoints"]["initial_share"] = "", 0.5
    with pytest.raises(RecipeError, match=r"initial_share needs a model"):
        recipe_from_dict(table)
