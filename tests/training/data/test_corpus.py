"""Reading parallel text, and one clear line for text that can't be read."""

import gzip
from pathlib import Path

import pytest

from dragoman_training.data.text.corpus import Pair, ParallelText
from dragoman_training.errors import CorpusError


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_plain_and_gzip_files_side_by_side(tmp_path: Path) -> None:
    text = ParallelText(
        (write(tmp_path / "a.en", b"one\ntwo\n"), write(tmp_path / "b.en.gz", b"three")),
        (write(tmp_path / "a.pt.gz", b"um\ndois"), write(tmp_path / "b.pt", "três\n".encode())),
    )
    assert list(text) == [Pair("one", "um"), Pair("two", "dois"), Pair("three", "três")]


def test_columns_of_a_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "both.tsv.gz", b"one\tum\nthree\ttr\xc3\xaas\tmore\n")
    assert list(ParallelText((path,))) == [Pair("one", "um"), Pair("three", "três")]


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    source = write(tmp_path / "a", "\ufeffone\u2028more\r\n\x0ctwo\r\n".encode())
    target = write(tmp_path / "b", b"um\n\n")
    assert list(ParallelText((source,), (target,))) == [
        Pair("one\u2028more", "um"),
        Pair("\x0ctwo", ""),
    ]


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "no-ending"
    path.write_bytes(gzip.compress(b"one\tum\n"))
    assert list(ParallelText((path,))) == [Pair("one", "um")]


def error(*files: tuple[Path, ...]) -> str:
    with pytest.raises(CorpusError) as caught:
        list(ParallelText(*files))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("swapped", [False, True])
def test_unequal_line_counts(tmp_path: Path, swapped: bool) -> None:
    short, long = write(tmp_path / "a", b"1\n2\n"), write(tmp_path / "b", b"1\n2\n3\n4\n5\n")
    files = ((long,), (short,)) if swapped else ((short,), (long,))
    assert error(*files) == f"{short} has 2 lines but {long} has 5: they must be equal"


def test_bad_utf8_names_file_and_line(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "a", b"1\n2\n"), write(tmp_path / "b", b"1\n\xe9t\xe9\n")
    assert error((good,), (bad,)) == f"{bad}: line 2: not UTF-8 (byte 0xe9)"


def test_missing_file(tmp_path: Path) -> None:
    assert error((tmp_path / "none",)) == f"{tmp_path / 'none'}: no such file"


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    assert error((tmp_path,)).startswith(f"{tmp_path}: ")


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"1\tx\n" * 1000)[:-20])
    assert error((path,)).startswith(f"{path}: damaged gzip file")


def test_a_line_without_a_tab(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"1\tx\n2\n")
    assert error((path,)).startswith(f"{path}: line 2: no tab")


def test_a_target_file_for_each_source_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="2 source files but 1 target files"):
        ParallelText((tmp_path, tmp_path), (tmp_path,))
