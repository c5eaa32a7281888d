"""Bundles with a shortlist: written, measured, described, served, and refused where damaged."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dragoman_client import Client, Options
from dragoman_export.errors import ExportError, VerificationError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.lexicon import LexiconSettings
from dragoman_export.source import origin_of
from dragoman_export.texts import LexiconText
from dragoman_server.bundle.manifest import MANIFEST, SHORTLIST, Manifest, StoredFile
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.bundle.shortlist import Shortlist, read_shortlist
from dragoman_server.engine.engine import Engine
from dragoman_server.errors import BundleError
from dragoman_training.data.tokenizer import END
from dragoman_training.files import sha256
from support.bundles import REFERENCES, SAMPLE, TEXTS, ignore, trained_model
from support.checkpoints import checkpoint_of
from support.command import dragoman
from support.engine_bundles import one_lane
from support.service_running import serving, settings_for
from support.tokenizers import PAIR

LEXICON = LexiconText(list(zip(TEXTS, REFERENCES, strict=True)), LexiconSettings())
PLAIN = Options(split_sentences=False, keep_untranslatable=False, mend=False)


def export(path: Path, **settings: Any) -> None:
    wanted = ExportSettings(**{"name": "listed", "precision": "int8", **settings})
    export_bundle(origin_of(checkpoint_of(trained_model())), path, wanted, SAMPLE, ignore, LEXICON)


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("listed") / "bundle"
    export(path)
    return path


def test_it_is_learnt_from_the_text_that_is_given(listed: Path) -> None:
    shortlist = read_shortlist(listed / SHORTLIST)
    carried = read_bundle(listed).shortlist
    assert carried is not None
    assert (carried.always == shortlist.always).all()
    assert (carried.likely == shortlist.likely).all()
    sizes = read_bundle(listed).manifest.dimensions
    shortlist.check(sizes.source_vocabulary, sizes.target_vocabulary, END)
    sources, targets = PAIR.source.encode_all(TEXTS), PAIR.target.encode_all(REFERENCES)
    for source, target in zip(sources, targets, strict=True):
        found = shortlist.tokens_for(tuple(source))
        assert found is not None
        assert {*target} <= {*found.tolist()}
        assert len(found) < sizes.target_vocabulary / 2


def test_a_server_says_the_same_with_it(listed: Path) -> None:
    manifest = read_bundle(listed).manifest
    assert manifest.shortlist == SHORTLIST
    assert manifest.quality["token_agreement"] >= 0.99
    settings = settings_for(listed, engine=one_lane(8))
    with serving(settings) as running, Client(running.server.address) as client:
        for beam in (1, 4):
            options = replace(PLAIN, beam_size=beam)
            found = client.translate_batch(TEXTS, options=options)
            assert [each.text for each in found] == REFERENCES


def test_quality_is_measured_with_it(tmp_path: Path) -> None:
    """A shortlist of other text leaves out what the model would say."""
    wrong = LexiconText([(text, "louse") for text in TEXTS], LexiconSettings())
    settings = ExportSettings(name="x", precision="int8")
    checkpoint = checkpoint_of(trained_model())
    with pytest.raises(VerificationError, match=r"int8 with the shortlist loses .* BLEU"):
        export_bundle(origin_of(checkpoint), tmp_path / "b", settings, SAMPLE, ignore, wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"precision": "float32"}, "a shortlist is for int8, not float32"),
        ({"precision": "float16"}, "a shortlist is for int8, not float16"),
        ({"keep_float32": ("projection",)}, "its projection must not stay float32"),
    ],
)
def test_what_has_no_int8_projection_has_no_shortlist(
    settings: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match=says):
        export(tmp_path / "b", **settings)
    assert list(tmp_path.iterdir()) == []


def test_text_without_a_pair_is_refused(tmp_path: Path) -> None:
    settings = ExportSettings(name="x", precision="int8")
    nothing = LexiconText([("", ""), ("a", "")], LexiconSettings())
    with pytest.raises(ExportError, match="no sentence pair to learn a shortlist from"):
        export_bundle(
            origin_of(checkpoint_of(trained_model())),
            tmp_path / "b",
            settings,
            SAMPLE,
            ignore,
            nothing,
        )
    assert list(tmp_path.iterdir()) == []


def test_the_command(tmp_path: Path) -> None:
    checkpoint_of(trained_model()).save(tmp_path / "checkpoint")
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("".join(line + "\n" for line in TEXTS))
    target.write_text("".join(line + "\n" for line in REFERENCES))
    arguments = ("export", tmp_path / "checkpoint", tmp_path / "b", "--precision", "int8")
    text = ("--source", source, "--reference", target)
    lexicon = ("--shortlist-source", source, "--shortlist-target", target)
    run = dragoman(*arguments, *text, *lexicon, "--shortlist-likely", "7")
    assert run.returncode == 0, run.stderr
    assert read_shortlist(tmp_path / "b" / SHORTLIST).likely.shape[1] == 7
    assert "7 for each source token" in dragoman("inspect", tmp_path / "b").stdout
    for wrong, message in (
        (lexicon[:2], "--shortlist-source and --shortlist-target go together"),
        (("--shortlist-source", source, "--shortlist-target", tmp_path / "no"), "no such file"),
        ((*lexicon, "--shortlist-likely", "600"), "likely is 600: it must be at most 512"),
    ):
        run = dragoman(*arguments, *text, *wrong)
        assert run.returncode == 2
        assert len(run.stderr.splitlines()) == 1
        assert message in run.stderr


@pytest.mark.parametrize("missing", [SHORTLIST, "listed.onnx", "columns.onnx"])
def test_a_bundle_without_one_of_its_files_is_refused(
    missing: str, listed: Path, tmp_path: Path
) -> None:
    bundle = copy_of(listed, tmp_path)
    manifest = read_bundle(bundle).manifest
    (bundle / missing).unlink()
    with pytest.raises(BundleError, match=missing):
        read_bundle(bundle)
    files = {name: stored for name, stored in manifest.files.items() if name != missing}
    (bundle / MANIFEST).write_text(replace(manifest, files=files).to_json())
    with pytest.raises(BundleError, match=f"lists no {missing}"):
        read_bundle(bundle)


def test_another_graph_in_the_place_of_columns_is_refused(listed: Path, tmp_path: Path) -> None:
    bundle = copy_of(listed, tmp_path)
    shutil.copy(bundle / "move.onnx", bundle / "columns.onnx")
    list_again(bundle, "columns.onnx")
    with pytest.raises(BundleError, match=r"columns\.onnx: "):
        Engine(read_bundle(bundle), one_lane(), lambda report: None)


def test_a_shortlist_of_another_model_is_refused(listed: Path, tmp_path: Path) -> None:
    bundle = copy_of(listed, tmp_path)
    other = Shortlist(np.array([END, 5], np.int32), np.full((7, 3), -1, np.int32))
    other.save(bundle / SHORTLIST)
    list_again(bundle, SHORTLIST)
    with pytest.raises(BundleError, match=r"shortlist.npz: likely is of shape \(7, 3\)"):
        Engine(read_bundle(bundle), one_lane(), lambda report: None)


def test_lists_are_checked_when_a_bundle_is_loaded(listed: Path, tmp_path: Path) -> None:
    """By golden sentences: here each token has the weights of another one."""
    assert "golden sentences decoded to the same tokens" in dragoman("verify", listed).stdout
    bundle = copy_of(listed, tmp_path)
    graph = onnx.load(bundle / "columns.onnx", load_external_data=False)
    vocabulary = read_manifest(bundle).dimensions.target_vocabulary
    other = onnx.numpy_helper.from_array(np.roll(np.arange(vocabulary), 1), "other")
    graph.graph.initializer.append(other)
    (first, *_), nodes = graph.graph.input, graph.graph.node
    nodes.insert(0, onnx.helper.make_node("Gather", ["other", first.name], ["shifted"]))
    for node in nodes[1:]:
        if node.op_type == "Gather":
            node.input[1] = "shifted"
    onnx.save(graph, bundle / "columns.onnx")
    list_again(bundle, "columns.onnx")
    run = dragoman("verify", bundle)
    assert run.returncode == 2
    assert "golden sentence 1 has other scores with its shortlist" in run.stderr


def test_a_manifest_of_another_precision_has_none(listed: Path) -> None:
    with pytest.raises(ValueError, match="a shortlist is for int8, not float32"):
        replace(read_manifest(listed), precision="float32")


def copy_of(bundle: Path, directory: Path) -> Path:
    return Path(shutil.copytree(bundle, directory / "copy"))


def list_again(bundle: Path, name: str) -> None:
    """In the manifest, as it is now."""
    manifest, file = read_manifest(bundle), bundle / name
    stored = StoredFile(bytes=file.stat().st_size, sha256=sha256(file))
    files = {**manifest.files, name: stored}
    (bundle / MANIFEST).write_text(replace(manifest, files=files).to_json())


def read_manifest(bundle: Path) -> Manifest:
    return Manifest.from_json((bundle / MANIFEST).read_text())
