"""Files that are broken or hostile: one line that says what is wrong, in little time and memory."""

import io
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_documents import FORMATS, DocumentError, DocumentSettings, open_document
from support.documents import (
    DOCX_BODY,
    SAMPLES,
    docx,
    unzipped,
    zipped,
)

PATIENCE_S = 10.0
"""Seconds of computing that no file may take."""


def refused(data: bytes, name: str, **bounds: int) -> str:
    """The one line that a file is refused with."""
    with pytest.raises(DocumentError) as raised:
        open_document(data, name, DocumentSettings(**bounds))  # type: ignore[arg-type]
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_zip_bombs() -> None:
    bomb = docx(DOCX_BODY, **{"word/media/big.bin": bytes(4 << 20)})
    assert "over 200 times larger" in refused(bomb, "docx")
    sample = SAMPLES["docx"]
    assert "members, and may have 2" in refused(sample, "docx", max_members=2)
    assert "MiB unpacked" in refused(sample, "docx", max_unpacked_bytes=100)
    assert "too large to be read" in refused(sample, "docx", max_text_bytes=100)
    assert "larger than" in refused(sample, "docx", max_bytes=100)
    assert "segments, and may have 3" in refused(sample, "docx", max_segments=3)


def test_zips_with_members_that_overlap() -> None:
    """As in Fifield's bomb: many entries of the list point to the same bytes."""
    data = zipped({"a": bytes(range(256)) * 40}, stored=("a",))
    end = data.rindex(b"PK\5\6")
    first = data.index(b"PK\1\2")
    listed = [data[first:end].replace(b"a", bytes([letter])) for letter in b"abcdefgh"]
    size = len(data[first:end]) * 8
    tail = bytearray(data[end:])
    tail[8:16] = (8).to_bytes(2, "little") * 2 + size.to_bytes(4, "little")
    assert "overlap" in refused(data[:first] + b"".join(listed) + bytes(tail), "docx")


@pytest.mark.parametrize("name", ["../evil.xml", "/etc/passwd", "a/../../b", "a\\b"])
def test_names_that_lead_elsewhere(name: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("x" * len(name), b"x")
    data = file.getvalue().replace(b"x" * len(name), name.encode())
    assert "leads elsewhere" in refused(data, "docx")


def test_other_zips_that_are_refused() -> None:
    assert "is not a whole zip file" in refused(b"no zip", "docx")
    assert "is not a whole zip file" in refused(SAMPLES["docx"][:-30], "docx")
    assert "no Office file" in refused(SAMPLES["odt"], "docx")
    assert "not a file of the kind" in refused(SAMPLES["pptx"], "docx")
    assert "no OpenDocument file" in refused(SAMPLES["docx"], "odt")
    assert "no book" in refused(SAMPLES["docx"], "epub")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_BZIP2) as target:
        target.writestr("content.xml", "<a/>")
    assert "not deflated" in refused(packed.getvalue(), "odt")
    locked = bytearray(SAMPLES["odt"])
    locked[locked.index(b"PK\1\2") + 8] |= 1
    assert "password" in refused(bytes(locked), "odt")


def replaced(name: str, **members: str) -> bytes:
    return zipped({**unzipped(SAMPLES[name]), **members})


def test_entities_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("very secret")
    laughs = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><a>&b;</a>'
    outside = f'<!DOCTYPE a [<!ENTITY x SYSTEM "{secret.as_uri()}">]><a>&x;</a>'
    for hostile in (laughs, outside):
        data = replaced("odt", **{"content.xml": hostile})
        assert "content.xml: declares entities" in refused(data, "odt")
        assert "declares entities" in refused(hostile.encode(), "xliff")
    parameter = f'<!DOCTYPE a [<!ENTITY % x SYSTEM "{secret.as_uri()}"> %x;]><a/>'
    assert "declares entities" in refused(parameter.encode(), "xliff")


def test_protected_books_and_documents() -> None:
    page = "OEBPS/text/page%201.xhtml"
    locks = (
        '<encryption><EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData>'
        f'<CipherReference URI="{page}"/></CipherData></EncryptedData></encryption>'
    )
    assert "encrypted" in refused(replaced("epub", **{"META-INF/encryption.xml": locks}), "epub")
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        "<manifest:encryption-data/></manifest:manifest>"
    )
    assert "password" in refused(replaced("odt", **{"META-INF/manifest.xml": manifest}), "odt")


def test_broken_xml_and_json() -> None:
    assert "not well-formed" in refused(replaced("odt", **{"content.xml": "<a><b></a>"}), "odt")
    assert "nested more than" in refused(b"<a>" * 5000 + b"</a>" * 5000, "xliff")
    assert "not JSON" in refused(b'{"a": ', "json")
    assert "not JSON" in refused(b"[" * 100_000, "json")
    assert "not YAML" in refused(b"a: [", "yaml")
    assert "nested more than" in refused(b"[" * 1000 + b"]" * 1000, "yaml")
    assert "not a catalogue" in refused(b"hello there", "po")
    assert "no times" in refused(b"hello", "srt")
    assert "WEBVTT" in refused(b"hello", "vtt")
    assert "no column" in refused_columns()


def refused_columns() -> str:
    with pytest.raises(DocumentError) as raised:
        open_document(b"a,b\n1,2\n", "csv", DocumentSettings(columns=("c",)))
    return str(raised.value)


def test_unknown_formats(tmp_path: Path) -> None:
    file = tmp_path / "a.xyz"
    file.write_text("hello")
    with pytest.raises(DocumentError, match="no format that is known"):
        open_document(file)
    with pytest.raises(DocumentError, match="not a format"):
        open_document(b"", "pdf")
    with pytest.raises(DocumentError, match="say of which format"):
        open_document(b"")


@pytest.mark.parametrize("field", ["max_bytes", "max_members", "max_ratio", "max_depth"])
def test_bounds_are_checked(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        DocumentSettings(**{field: 0})  # type: ignore[arg-type]


def exercise(data: bytes, name: str) -> None:
    """Open and write: well, or with a DocumentError, and soon."""
    begun = time.process_time()
    try:
        document = open_document(data, name)
        same = {segment.id: segment.text for segment in document.segments}
        document.write(same, "pt", rewrite=True)
    except DocumentError as error:
        assert "\n" not in str(error)  # noqa: PT017
    assert time.process_time() - begun < PATIENCE_S


MANY = 30_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("html", "<b>" * MANY),
        ("html", "<b>" * MANY + "x" + "</i>" * MANY),
        ("html", "<a href='" * MANY),
        ("html", "<" * MANY * 3),
        ("html", "<!--" * MANY),
        ("html", "<p translate=no>" * MANY),
        ("html", "<script>" * MANY),
        ("html", "<a x " + "=" * MANY * 3),
        ("html", "a &amp" * MANY),
        ("md", "[a](" * 5000),
        ("md", "**a " * 5000),
        ("md", "> " * 2000 + "x"),
        ("md", "![" * 5000 + "x" + "](a)" * 5000),
        ("md", "`" * 9999 + "x"),
        ("md", "---\n" * MANY),
        ("md", "|a" * 3000 + "\n" + "|-" * 3000 + "\n" + "|x" * 3000),
        ("srt", "00:00:01,000 --> 00:00:02,000\n" + "a b\n" * MANY),
        ("srt", "00:00:01,000 --> 00:00:02,000\n" + "{" * MANY * 3),
        ("srt", "00:" * MANY + "00:00,000 --> "),
        ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n" + "<i>" * MANY),
        ("po", 'msgid "a"\nmsgstr ""\n' * 5000),
        ("po", 'msgid "' + "\\" * MANY * 3),
        ("csv", '"' * MANY * 3 + "\n"),
        ("csv", "a,b\n" + '"x' * MANY),
        ("json", "[" + '"a b",' * MANY + '"x"]'),
        ("json", '{"a":' * 900 + '"x y"' + "}" * 900),
        ("yaml", "a: &a [x y, x y]\n" + "b: [*a, *a]\n" * 9000),
        ("yaml", "- " * 3000 + "x"),
        ("txt", ("word " * 12 + "\n") * MANY),
        ("xliff", "<xliff xmlns='urn:oasis:names:tc:xliff:document:1.2'>" + "<a b='" * MANY),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_no_text_takes_long(name: str, data: str) -> None:
    exercise(data.encode(), name)


SNIPPETS = st.sampled_from(
    [b"<", b">", b"</w:p>", b"<w:p>", b"&", b"&#0;", b'"', b"'", b"\\", b"]]>", b"<![CDATA[", b"\0"]
    + [
        b"<!--",
        b"{",
        b"}",
        b"[",
        b"*",
        b"`",
        b"\r",
        b"\n\n",
        b"\xff",
        b"\xe2\x82",
        b"-->",
        b"msgid",
    ]
)
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 60), st.one_of(SNIPPETS, st.binary(max_size=6))),
    min_size=1,
    max_size=5,
)


def edited(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """Bytes in which pieces were cut out, put in, or replaced."""
    for where, length, piece in edits:
        at = int(where * len(data))
        data = data[:at] + piece + data[at + length :]
    return data


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60)
@given(edits=EDITS)
def test_damaged_files(name: str, edits: list[tuple[float, int, bytes]]) -> None:
    exercise(edited(SAMPLES[name], edits), name)


@pytest.mark.parametrize("name", [name for name in FORMATS if SAMPLES[name][:2] == b"PK"])
@settings(max_examples=60)
@given(edits=EDITS, which=st.integers(0, 5))
def test_damaged_members(name: str, edits: list[tuple[float, int, bytes]], which: int) -> None:
    members = unzipped(SAMPLES[name])
    chosen = list(members)[which % len(members)]
    exercise(zipped({**members, chosen: edited(members[chosen], edits)}), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=3000)
@given(edits=EDITS, which=st.integers(0, 5))
def test_damaged_many_times(name: str, edits: list[tuple[float, int, bytes]], which: int) -> None:
    if SAMPLES[name][:2] != b"PK":
        exercise(edited(SAMPLES[name], edits), name)
        return
    members = unzipped(SAMPLES[name])
    chosen = list(members)[which % len(members)]
    exercise(zipped({**members, chosen: edited(members[chosen], edits)}), name)
