"""``dragoman translate`` of documents, as a process against a real server of the default model."""

import re
import signal
import subprocess
import zipfile
from functools import partial
from pathlib import Path

import pytest
from lxml import etree

from dragoman_documents import open_document
from support.client_servers import dragoman, error_of, running_dragoman
from support.documents import HTML, SAMPLES, docx, unzipped
from support.service_running import PATIENCE, Running, held, wait_until


@pytest.fixture(scope="module")
def at(running: Running) -> dict[str, str]:
    """The environment that names the server."""
    return {"DRAGOMAN_ADDRESS": running.server.address}


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def has_grown(path: Path, size: int) -> bool:
    return path.exists() and path.stat().st_size > size


def numbered(count: int) -> bytes:
    """A docx file of many paragraphs."""
    return docx(
        "".join(f"<w:p><w:r><w:t>We have {n} red cars.</w:t></w:r></w:p>" for n in range(count))
    )


def test_a_docx_gets_a_translation_beside_it(at: dict[str, str], tmp_path: Path) -> None:
    source = write(tmp_path / "report.docx", SAMPLES["docx"])
    run = dragoman("translate", source, environment=at)
    assert run.returncode == 0, run.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["report.docx", "report.pt.docx"]
    assert source.read_bytes() == SAMPLES["docx"]
    output = tmp_path / "report.pt.docx"
    with zipfile.ZipFile(output) as file:
        assert file.testzip() is None
    before, after = unzipped(SAMPLES["docx"]), unzipped(output.read_bytes())
    assert {name for name in before if before[name] != after[name]} == {"word/document.xml"}
    root = etree.fromstring(after["word/document.xml"])
    text = " ".join(root.itertext())
    assert "Name:" not in text
    (bold,) = root.iterfind(".//{*}r[{*}rPr]/{*}rPr/{*}b")
    words = "".join(bold.getparent().getparent().itertext()).strip()
    assert words
    assert "friend" not in words
    assert "7 segments" in run.stderr.decode()


def test_html_keeps_all_but_its_text(at: dict[str, str], tmp_path: Path) -> None:
    source, output = write(tmp_path / "page.html", HTML), tmp_path / "out.html"
    run = dragoman("translate", source, "--output", output, "-t", "pt", environment=at)
    assert run.returncode == 0, run.stderr
    page = output.read_text()
    assert '<html lang="pt">' in page
    kept = (
        "<!DOCTYPE html>",
        "<!-- a comment -->",
        "<code>make run</code>",
        ">Stay<",
        "verbatim  text",
    )
    for each in (*kept, '<p>no</p>")', "<style>p { color: red }</style>"):
        assert each in page
    tags = re.compile(r"</?(\w+)")
    assert sorted(tags.findall(page)) == sorted(tags.findall(HTML))
    assert "1 × <p>" in run.stderr.decode()


def test_folders_and_many_files(at: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.txt", "Good morning.\n")
    write(tmp_path / "in" / "deep" / "b.srt", SAMPLES["srt"])
    write(tmp_path / "in" / "c.bin", b"\0")
    write(tmp_path / "in" / "broken.docx", b"PK nothing")
    out = tmp_path / "out"
    run = dragoman("translate", f"{tmp_path / 'in'}/", "--output", out, environment=at)
    assert run.returncode == 5
    assert "broken.docx: is not a whole zip file" in run.stderr.decode()
    found = sorted(str(each.relative_to(out)) for each in out.rglob("*") if each.is_file())
    assert found == ["a.pt.txt", "deep/b.pt.srt"]
    assert (out / "a.pt.txt").read_text() == "Bom dia.\n"


def test_nothing_is_overwritten_without_a_word(at: dict[str, str], tmp_path: Path) -> None:
    source = write(tmp_path / "a.txt", "Good morning.\n")
    output = write(tmp_path / "a.pt.txt", "mine")
    assert "is there already" in error_of(dragoman("translate", source, environment=at), 2)
    run = dragoman("translate", source, "--output", source, "--overwrite", environment=at)
    assert "is a file that is translated" in error_of(run, 2)
    assert (source.read_text(), output.read_text()) == ("Good morning.\n", "mine")
    assert dragoman("translate", source, "--overwrite", environment=at).returncode == 0
    assert output.read_text() == "Bom dia.\n"


def test_texts_that_look_like_files(at: dict[str, str], tmp_path: Path) -> None:
    run = dragoman("translate", "missing.docx", environment=at)
    assert run.returncode == 0
    assert "there is no such file" in run.stderr.decode()
    assert run.stdout
    run = dragoman("translate", "Please open missing.docx", environment=at)
    assert (run.returncode, run.stderr) == (0, b"")
    source = write(tmp_path / "a.txt", "Good morning.\n")
    run = dragoman("translate", source, "Good morning.", environment=at)
    assert "give texts or documents" in error_of(run, 2)
    assert "for documents" in error_of(
        dragoman("translate", "Hi", "--column", "a", environment=at), 2
    )
    for more in (["--json"], ["--markup", "html"]):
        assert "without --file" in error_of(dragoman("translate", source, *more, environment=at), 2)


@pytest.mark.parametrize("kind", ["xlf", "tmx"])
def test_segments_beside_their_translations(at: dict[str, str], tmp_path: Path, kind: str) -> None:
    source = write(tmp_path / "report.docx", SAMPLES["docx"])
    beside = tmp_path / f"check.{kind}"
    run = dragoman("translate", source, "--bilingual", beside, environment=at)
    assert run.returncode == 0, run.stderr
    root = etree.parse(beside).getroot()
    names = ("source", "target") if kind == "xlf" else ("tuv[1]/seg", "tuv[2]/seg")
    sources, targets = (
        root.findall(f".//{{*}}{name}".replace("/seg", "/{*}seg")) for name in names
    )
    assert len(sources) == len(targets) == 7
    assert "".join(sources[2].itertext()) == "Name:"
    assert "".join(targets[2].itertext()) not in ("", "Name:")


def test_a_run_that_was_cut_twice_ends_with_the_same_bytes(
    running: Running, at: dict[str, str], tmp_path: Path
) -> None:
    source = write(tmp_path / "a.docx", numbered(300))
    whole = tmp_path / "whole.docx"
    assert dragoman("translate", source, "-o", whole, environment=at).returncode == 0
    output, journal = tmp_path / "cut.docx", tmp_path / ".cut.docx.journal"
    asked: list[str | Path] = ["translate", source, "-o", output]
    for number, ending in enumerate((signal.SIGKILL, signal.SIGINT)):
        more = ["--resume"] if number else []
        before = journal.stat().st_size if number else 0
        with running_dragoman(*asked, *more, environment=at) as process:
            wait_until(partial(has_grown, journal, before + 900), "some segments")
            with held(running.engine):  # so that it is cut before it is done
                process.send_signal(ending)
                process.wait(PATIENCE)
        assert not output.exists()
        done = journal.read_bytes()
        assert done.count(b"\n") < 300
        journal.write_bytes(done[:-3])  # a line that is not whole, as after a crash
    said = error_of(dragoman(*asked, environment=at), 2)
    assert "--resume goes on" in said
    other = dragoman(*asked, "--resume", "--beam-size", "2", environment=at)
    assert "other options" in error_of(other, 2)
    assert dragoman(*asked, "--resume", environment=at).returncode == 0
    assert output.read_bytes() == whole.read_bytes()
    assert not journal.exists()
    assert len(open_document(output).segments) == 300


def test_no_document_is_half_written(at: dict[str, str], tmp_path: Path) -> None:
    source = write(tmp_path / "bad.docx", SAMPLES["docx"][:-40])
    run: subprocess.CompletedProcess[bytes] = dragoman("translate", source, environment=at)
    assert "is not a whole zip file" in error_of(run, 1)
    assert [each.name for each in tmp_path.iterdir()] == ["bad.docx"]
