"""``dragoman import-argos``: a bundle that a server takes, or one line and nothing written."""

from pathlib import Path

from dragoman_server.bundle.reading import read_bundle
from support.argos_models import MARIAN, OPENNMT, package_files, save_package, zipped
from support.command import dragoman


def test_a_package_becomes_a_bundle(tmp_path: Path) -> None:
    package = save_package(tmp_path / "model.argosmodel", OPENNMT, "int8")
    done = dragoman("import-argos", package, tmp_path / "pt-en", "--max-tokens", "24")
    assert done.returncode == 0, done.stderr
    manifest = read_bundle(tmp_path / "pt-en").manifest
    assert (manifest.name, manifest.licence) == ("pt-en", "CC-BY-4.0")
    assert (manifest.source_language, manifest.target_language) == ("pt", "en")
    assert manifest.max_source_tokens == 24
    assert manifest.source_without_end
    assert manifest.provenance["imported"]["from"] == "Argos Translate"


def test_a_refusal_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    files = package_files(MARIAN)
    files["model/model.bin"] = files["model/model.bin"][:-1]
    package = tmp_path / "model.argosmodel"
    package.write_bytes(zipped(files))
    done = dragoman("import-argos", package, tmp_path / "pt-en")
    assert done.returncode == 2
    *stages, reason = done.stderr.splitlines()
    assert reason == "dragoman: model.bin is cut off"
    assert len(stages) <= 1
    assert sorted(tmp_path.iterdir()) == [package]
