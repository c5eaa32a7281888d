"""``dragoman import-marian``, from a directory to a server that translates with the model."""

from pathlib import Path

import pytest

from dragoman_client import Client
from dragoman_export.proofs.batch_invariance import compare_batches
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from support.command import dragoman
from support.marian_models import MarianModel, sources, texts
from support.service_running import few_rows, serving, settings_for

FIREFOX = MarianModel(is_quantized=True, shortlist="bin", scale=1.5)
PLAIN = MarianModel(form="npz", decoder="self-attention", vocabularies=(120, 90), tied="target")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundles as the command writes them, with nothing given that the files say."""
    path = tmp_path_factory.mktemp("marian")
    for name, kind, options in (
        ("firefox", FIREFOX, ("--licence", "MPL-2.0")),
        ("plain", PLAIN, ("--source-language", "en", "--target-language", "pt-BR")),
    ):
        source = kind.write(path / f"{name}.marian")
        ended = dragoman("import-marian", source, path / name, "--max-tokens", "32", *options)
        assert ended.returncode == 0, ended.stderr
    return path


def test_8_bit_weights_become_int8_without_text(directory: Path) -> None:
    manifest = read_bundle(directory / "firefox").manifest
    assert manifest.precision == "int8"
    assert manifest.decoder == "ssru"
    assert manifest.shortlist
    assert manifest.licence == "MPL-2.0"
    assert (manifest.source_language, manifest.target_language) == ("en", "pt")
    assert manifest.max_source_tokens == 32
    told = manifest.provenance["imported"]
    assert (told["from"], told["weights"]) == ("Marian", "intgemm8")
    assert len(told["sha256"]) == 64


def test_floats_become_float32(directory: Path) -> None:
    manifest = read_bundle(directory / "plain").manifest
    assert manifest.precision == "float32"
    assert manifest.decoder != "ssru"
    assert not manifest.shortlist
    assert (manifest.source_language, manifest.target_language) == ("en", "pt-BR")
    assert manifest.source_tokenizer != manifest.target_tokenizer


@pytest.mark.parametrize("name", ["firefox", "plain"])
def test_a_sentence_gives_the_same_bits_in_any_company(name: str, directory: Path) -> None:
    graphs = Graphs(read_bundle(directory / name), GraphSettings(rows=8))
    some = sources(8, seed=5, vocabulary=120)
    compared, different = compare_batches(graphs, some, batches=30)
    assert compared > 100
    assert not different


def test_a_server_translates_with_them(directory: Path) -> None:
    bundles = (directory / name for name in ("firefox", "plain"))
    with (
        serving(settings_for(*bundles, engine=few_rows(8))) as server,
        Client(server.server.address) as client,
    ):
        for model in ("firefox", "plain"):
            alone = [client.translate(text, model=model).text for text in texts(4, seed=8)]
            assert all(alone)
            found = client.translate_many(texts(4, seed=8), model=model)
            assert [getattr(each, "text", each) for each in found] == alone


REFUSED = {
    "another cell": (MarianModel(changes={"dec-cell": "gru"}), (), "dec-cell is 'gru'"),
    "int8 of floats without text": (MarianModel(), ("--precision", "int8"), "must be measured"),
    "float32 products in float32": (MarianModel(), ("--keep-float32", "x"), "keep_float32 is for"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_nothing(case: str, tmp_path: Path) -> None:
    kind, options, says = REFUSED[case]
    ended = dragoman("import-marian", kind.write(tmp_path / "marian"), tmp_path / "b", *options)
    assert ended.returncode == 2
    assert says in ended.stderr.replace("\n", " ")
    assert [file.name for file in tmp_path.iterdir()] == ["marian"]
