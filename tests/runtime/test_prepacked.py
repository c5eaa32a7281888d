"""Weights that processes share: the same bits, whole or not there, and never somebody else's."""

import os
from pathlib import Path

import numpy as np
import pytest

from dragoman_server.bundle.reading import Bundle, read_bundle
from dragoman_server.runtime import prepacked
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.prepacked import default_directory, entry_of, write_entry
from dragoman_server.runtime.reference_search import beam, greedy
from support import MODEL


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return read_bundle(MODEL)


@pytest.fixture(scope="module")
def entry(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = write_entry(bundle, tmp_path_factory.mktemp("cache") / "dragoman")
    assert written is not None
    return written


def mapped(path: Path) -> int:
    """Return how many kilobytes of a file this process has mapped and does not own alone."""
    private = shared = 0
    is_ours = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if "-" in first and not first.endswith(":"):
            is_ours = bool(rest) and rest[-1] == str(path)
        elif is_ours and first in ("Private_Dirty:", "Private_Clean:"):
            private += int(rest[0])
        elif is_ours and first == "Rss:":
            shared += int(rest[0])
    assert private <= shared
    return shared


def test_sentences_are_decoded_to_the_same_bits(bundle: Bundle, entry: Path) -> None:
    ours = Graphs(bundle, GraphSettings(rows=8))
    shared = Graphs(bundle, GraphSettings(rows=8, prepacked=entry))
    rng = np.random.default_rng(0)
    sources = [rng.integers(300, 7000, length).tolist() for length in (3, 9, 20, 1, 14)]
    limits = [30] * len(sources)
    for one, other in zip(
        greedy(ours, sources, limits), greedy(shared, sources, limits), strict=True
    ):
        assert (one.ids, one.token_log_probs) == (other.ids, other.token_log_probs)
    first, second = (beam(graphs, sources[1], 30, size=4) for graphs in (ours, shared))
    assert [(h.ids, h.score) for h in first] == [(h.ids, h.score) for h in second]


def test_weights_are_mapped_and_not_copied(bundle: Bundle, entry: Path) -> None:
    graphs = Graphs(bundle, GraphSettings(rows=1, prepacked=entry))
    greedy(graphs, [[500, 600]], [5])
    assert mapped(entry / "decoder.bin") > 1000


def test_what_is_there_is_used_again(bundle: Bundle, entry: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in entry.iterdir()}
    assert write_entry(bundle, entry.parent) == entry
    assert {path.name: path.stat().st_mtime_ns for path in entry.iterdir()} == before
    assert [path.name for path in entry.parent.iterdir()] == [entry.name]


def test_another_cpu_or_onnxruntime_has_another_place(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = {entry_of(bundle, tmp_path)}
    monkeypatch.setattr(prepacked, "_cpu", lambda: "another")
    places.add(entry_of(bundle, tmp_path))
    monkeypatch.setattr("onnxruntime.__version__", "0")
    places.add(entry_of(bundle, tmp_path))
    assert len(places) == 3


def test_a_directory_that_others_may_write_to_is_not_used(
    bundle: Bundle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_to_all = tmp_path / "cache"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert write_entry(bundle, open_to_all) is None
    assert "others may write to it" in caplog.text
    assert not list(open_to_all.iterdir())


def test_where_nothing_can_be_written_everything_works_without(
    bundle: Bundle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    assert write_entry(bundle, tmp_path / "file" / "cache") is None
    assert "weights are not shared between processes" in caplog.text


def test_the_oldest_entries_go_first(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepacked, "_MAX_ENTRIES", 3)
    for age, name in enumerate(("newest", "older", "oldest"), start=1):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    tmp_path.chmod(0o700)
    kept = write_entry(bundle, tmp_path)
    assert kept is not None
    assert {path.name for path in tmp_path.iterdir()} == {"newest", "older", kept.name}


def test_the_cache_directory_of_a_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "dragoman"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_directory() == Path.home() / ".cache" / "dragoman"


def test_who_has_no_home_shares_no_weights(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As the user of a container, whom its system does not know."""

    def no_home(kind: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(no_home))
    assert default_directory() is None
    assert "no home directory" in caplog.text


def test_a_directory_of_its_own_is_made_where_all_may_write(bundle: Bundle, tmp_path: Path) -> None:
    """As on a volume of Kubernetes, which belongs to root and lets the pod's group write."""
    tmp_path.chmod(0o2777)
    assert write_entry(bundle, tmp_path / "dragoman")
    assert (tmp_path / "dragoman").stat().st_mode & 0o077 == 0
