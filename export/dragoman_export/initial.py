"""Models from elsewhere as checkpoints, for training to begin with (``training.initial``).

A directory is read as ``dragoman import-hf`` and ``import-marian`` read it, an Argos package as
``import-argos`` does, and a bundle as ``read_back`` does.
"""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman_export.argos import importer as argos
from dragoman_export.errors import ExportError
from dragoman_export.hf import importer as hf
from dragoman_export.marian import importer as marian
from dragoman_export.read_back import checkpoint_of_bundle
from dragoman_export.source import Origin
from dragoman_server.bundle.manifest import MANIFEST, SHORTLIST
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.data.tokenizer import foreign_pair
from dragoman_training.errors import CheckpointError
from dragoman_training.train.checkpoint import Checkpoint, weights_of


def read_initial(path: Path, source_language: str, target_language: str) -> Checkpoint:
    """Return the model of a bundle, of a directory of Hugging Face or Marian, or of a package.

    The languages are those of the text: a model of several is told which by their tokens. Raises
    ``CheckpointError`` with the reason if it can't be read.
    """
    if (path / MANIFEST).is_file():
        return checkpoint_of_bundle(path, source_language, target_language)
    try:
        return _checkpoint(_origin(path, source_language, target_language))
    except ExportError as error:
        reason = str(error)
        where = "" if str(path) in reason else f"{path}: "
        raise CheckpointError(f"{where}{reason}") from None


def _origin(path: Path, source: str, target: str) -> Origin:
    if path.is_file() and path.suffix == ".argosmodel":
        return argos.read_origin(
            path, argos.ImportSettings(source_language=source, target_language=target)
        )
    if (path / "config.json").is_file():
        return hf.read_origin(
            path,
            hf.ImportSettings(source_languages=_given(source), target_languages=_given(target)),
        )
    return marian.read_origin(
        path, marian.ImportSettings(source_language=source, target_language=target)
    )


def _given(tag: str) -> tuple[str, ...]:
    return (tag,) if tag else ()


def _checkpoint(origin: Origin) -> Checkpoint:
    model, manifest = origin.model, origin.manifest
    sizes = {
        "source_vocabulary": model.source_vocabulary,
        "target_vocabulary": model.target_vocabulary,
    }
    kept = {
        key: value
        for key, value in manifest.items()
        if key not in ("provenance", "licence", "source_language", "target_language")
    }
    tokenizers = foreign_pair(
        origin.files,
        list(sizes.values()),
        origin.ends,
        origin.special.pad,
        kept,
        b"" if origin.shortlist is None else _content(origin.shortlist),
    )
    config = {
        **manifest["provenance"],
        "model": {**asdict(model.settings), **sizes},
        "source_language": manifest["source_language"],
        "target_language": manifest["target_language"],
    }
    return Checkpoint(config, weights_of(model), tokenizers)


def _content(shortlist: Shortlist) -> bytes:
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / SHORTLIST
        shortlist.save(path)
        return path.read_bytes()
