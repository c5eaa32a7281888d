"""Argos packages that are damaged or mean harm: one line, whatever is wrong with the archive."""

import io
import re
import struct
import warnings
import zipfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_export.argos.importer import ImportSettings, read_origin
from dragoman_export.argos.package import open_package
from dragoman_export.errors import ExportError
from dragoman_export.source import Origin
from support.argos_models import MARIAN, ROOT_NAME, package_files, zipped


@cache
def whole() -> bytes:
    return zipped(package_files(MARIAN))


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(ExportError) as caught:
        read_origin(path, ImportSettings())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def archive(
    *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_STORED
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as writer, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in entries:
            writer.writestr(name, content)
    return out.getvalue()


def with_flags(content: bytes, bits: int) -> bytes:
    """Set bits of the flags of every file, where they stand and where they are listed."""
    changed = bytearray(content)
    for signature, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        for match in re.finditer(re.escape(signature), content):
            changed[match.start() + place] |= bits
    return bytes(changed)


def with_sizes(content: bytes, size: int) -> bytes:
    """State another size of every file."""
    changed = bytearray(content)
    for signature, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        for match in re.finditer(re.escape(signature), content):
            struct.pack_into("<I", changed, match.start() + place, size)
    return bytes(changed)


METADATA = (f"{ROOT_NAME}/metadata.json", b"{}")
BOMB = archive((f"{ROOT_NAME}/metadata.json", bytes(40 << 20)), method=zipfile.ZIP_DEFLATED)
REFUSED: list[tuple[bytes, str]] = [
    (b"", "not a zip archive, or a damaged one"),
    (b"PK\5\6", "not a zip archive, or a damaged one"),
    (b"PK\5\6" + bytes(18), "not one directory"),
    (archive(("metadata.json", b"{}")), "not one directory in an archive"),
    (archive(METADATA, ("other/metadata.json", b"{}")), "not one directory in an archive"),
    (archive(METADATA, (f"{ROOT_NAME}/../../x", b"")), "leads out of the package"),
    (archive(METADATA, ("/etc/passwd", b"")), "'/etc/passwd' leads out of the package"),
    (archive(METADATA, (f"{ROOT_NAME}/..\\x", b"")), "leads out of the package"),
    (archive(METADATA, METADATA), "metadata.json' twice"),
    (archive(METADATA, method=zipfile.ZIP_BZIP2), "in another way than deflate"),
    (with_flags(archive(METADATA), 1), "is encrypted"),
    (with_flags(archive(METADATA), 1 << 5), "metadata.json is damaged"),
    (with_sizes(archive(METADATA), 0xFFFFFFF0), "would become 4294967280 bytes of 2"),
    (with_sizes(archive(METADATA), 3 << 24), "would become 50331648 bytes of 2"),
    (with_sizes(archive(METADATA), 200), "metadata.json is damaged"),
    (with_sizes(archive(METADATA), 1), "metadata.json is damaged"),
    (BOMB, r"would become 41943040 bytes of \d+"),
    (archive(METADATA)[:-22] + b"PK\6\7" + bytes(16) + archive(METADATA)[-22:], "a zip64 archive"),
    (
        archive(METADATA)[:-10] + struct.pack("<I", 1 << 30) + archive(METADATA)[-6:],
        "its list of files has 1073741824 bytes",
    ),
    (archive((f"{ROOT_NAME}/metadata.json", b"[" * 100_000)), "metadata.json is not JSON"),
    (archive((f"{ROOT_NAME}/metadata.json", b"[]")), "metadata.json is not a JSON object"),
]


@pytest.mark.parametrize(("content", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_harm_is_told_in_a_line(tmp_path: Path, content: bytes, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path / "model.argosmodel", content))


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none", "no such file"),
        (tmp_path, "has no metadata.json"),
        (tmp_path / "none" / "x", "no such file"),
    ):
        with pytest.raises(ExportError, match=reason):
            read_origin(path, ImportSettings())


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "metadata.json").open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(ExportError, match="has 17825792 bytes: at most 16777216 are read"):
        read_origin(tmp_path, ImportSettings())


def test_a_directory_is_a_package_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(whole())) as packed:
        packed.extractall(tmp_path)
    with open_package(tmp_path / ROOT_NAME) as package:
        assert package.name == ROOT_NAME
        assert package.table("metadata.json")["from_code"] == "pt"
    told = read_origin(tmp_path / ROOT_NAME, ImportSettings()).manifest
    assert told["provenance"]["imported"]["package"] == ROOT_NAME


def test_an_archive_with_something_before_and_after_it(tmp_path: Path) -> None:
    """As a signature or a comment: the list of files is found as Python finds it."""
    (tmp_path / "model.argosmodel").write_bytes(b"x" * 100 + whole()[:-2] + b"\4\0done")
    assert read_origin(tmp_path / "model.argosmodel", ImportSettings()).special.end == 0


@pytest.mark.parametrize("name", sorted(package_files(MARIAN)))
def test_a_missing_or_empty_file_is_told(tmp_path: Path, name: str) -> None:
    files = package_files(MARIAN)
    removed = {key: content for key, content in files.items() if key != name}
    if name == "model/config.json":  # then the variables would have to say what is special
        assert read_origin_of(tmp_path, removed).manifest["source_without_end"]
    else:
        reason = "licence" if name == "README.md" else "has no"
        assert reason in refusal(tmp_path / "a.argosmodel", zipped(removed))
    refusal(tmp_path / "b.argosmodel", zipped({**files, name: b""}))


def read_origin_of(tmp_path: Path, files: dict[str, bytes]) -> Origin:
    (tmp_path / "c.argosmodel").write_bytes(zipped(files))
    return read_origin(tmp_path / "c.argosmodel", ImportSettings())


def try_to_read(path: Path, content: bytes) -> None:
    """Read a package, which may be whole; what is refused is refused in a line."""
    path.write_bytes(content)
    reason = ""
    try:
        read_origin(path, ImportSettings())
    except ExportError as error:
        reason = str(error)
    assert "\n" not in reason


@settings(max_examples=40)
@given(st.data())
def test_a_package_that_is_cut_off_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, len(whole()) - 1))
    path = tmp_path_factory.getbasetemp() / "cut.argosmodel"
    assert refusal(path, whole()[:length])


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    content = bytearray(whole())
    name = content.rfind(b"PK\x01\x02") + 46  # of the last entry in the list of files
    content[name] = 0
    assert "has a file without a name" in refusal(tmp_path / "a.argosmodel", bytes(content))


@settings(max_examples=40)
@given(st.data())
def test_changed_bytes_of_an_archive_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(whole())
    # Most bytes are weights; the list of files at the end is where there is more to go wrong.
    places = st.integers(0, len(content) - 1) | st.integers(len(content) - 900, len(content) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=6)):
        content[place] = data.draw(st.integers(0, 255))
    try_to_read(tmp_path_factory.getbasetemp() / "changed.argosmodel", bytes(content))


TEXTS = ["metadata.json", "model/config.json", "model/shared_vocabulary.json"]


@settings(max_examples=40)
@given(st.data())
def test_changed_files_in_an_archive_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    files = package_files_once()
    name = data.draw(st.sampled_from([*TEXTS, "sentencepiece.model", "README.md"]))
    content = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    path = tmp_path_factory.getbasetemp() / "files.argosmodel"
    try_to_read(path, zipped({**files, name: bytes(content)}))


@cache
def package_files_once() -> dict[str, bytes]:
    return package_files(MARIAN)
