"""A model's file in whichever form Marian wrote it, which shows at its first bytes."""

from pathlib import Path

import numpy as np

from dragoman_export.errors import ExportError
from dragoman_export.marian.binary_file import read_binary
from dragoman_export.marian.model_file import CONFIG, ModelFile
from dragoman_export.marian.npz_file import read_npz


def read_model(path: Path) -> ModelFile:
    """Read a model. Raises ``ExportError`` if the file is damaged, or holds what is not read."""
    try:
        with path.open("rb") as file:
            is_archive = file.read(2) == b"PK"
        model = read_npz(path) if is_archive else read_binary(path)
    except FileNotFoundError:
        raise ExportError(f"{path}: missing") from None
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ExportError(f"{path}: {error}") from None
    if not model.config:
        raise ExportError(f"{path}: has no {CONFIG}, which says what the model is")
    for name, weight in model.weights.items():
        if not np.isfinite(weight.values).all():
            raise ExportError(f"{path}: {name} has what is not a number")
    return model
