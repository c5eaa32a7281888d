"""The files of a Hugging Face model directory, read without transformers.

Whatever is wrong with one is told in a line that names it. Nothing is ever unpickled but tensors.
"""

import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dragoman_export.errors import ExportError

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"


class ModelDirectory:
    """A directory that ``from_pretrained`` of transformers would load."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise ExportError(f"{path}: no such directory")
        self.path = path

    def has(self, name: str) -> bool:
        """Tell whether there is a file of this name."""
        return (self.path / name).is_file()

    def table(self, name: str) -> dict[str, Any]:
        """Read a file with a JSON object."""
        try:
            table = json.loads(self.content(name))
        except (ValueError, RecursionError):
            raise ExportError(f"{self.path / name}: not JSON") from None
        if not isinstance(table, dict):
            raise ExportError(f"{self.path / name}: not a JSON object")
        return table

    def table_if_there(self, name: str) -> dict[str, Any]:
        """Read a file with a JSON object; an empty one if there is no such file."""
        return self.table(name) if self.has(name) else {}

    def content(self, name: str) -> bytes:
        """Read a file."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            raise ExportError(f"{self.path / name}: missing") from None
        except OSError as error:
            raise ExportError(f"{self.path / name}: {error.strerror}") from None

    def weights(self) -> dict[str, Tensor]:
        """Read all weights by their names, as float32."""
        weights: dict[str, Tensor] = {}
        for name in self._weight_files():
            file = self.path / name
            loaded = _unpickled(file) if file.suffix == ".bin" else _safetensors(file)
            for key, tensor in loaded.items():
                if not tensor.is_floating_point():
                    raise ExportError(f"{file}: {key} is of {tensor.dtype}, not of floats")
                weights[key] = tensor.float()
        return weights

    def _weight_files(self) -> list[str]:
        """Return the files with weights: one, or the parts that an index lists.

        Safetensors are taken if there is a choice.
        """
        for name in (SAFETENSORS, PICKLED):
            if self.has(name):
                return [name]
            index = f"{name}.index.json"
            if self.has(index):
                return self._parts(index)
        raise ExportError(f"{self.path}: neither {SAFETENSORS} nor {PICKLED}")

    def _parts(self, index: str) -> list[str]:
        places = self.table(index).get("weight_map")
        names = sorted({*places.values()}) if isinstance(places, dict) else []
        if not names:
            raise ExportError(f"{self.path / index}: lists no file")
        for name in names:
            # What it lists is read, so it must not lead out of the directory.
            if not isinstance(name, str) or Path(name).name != name or not self.has(name):
                raise ExportError(f"{self.path / index}: lists {name!r}, which is no file here")
        return names


def _safetensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise ExportError(f"{file}: not safetensors ({error})") from None


def _unpickled(file: Path) -> dict[str, Tensor]:
    try:
        # The unpickler of weights_only builds tensors and plain containers, and calls nothing.
        loaded = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, KeyError):
        raise ExportError(
            f"{file}: can't be read as weights alone, and nothing else is unpickled"
        ) from None
    if not isinstance(loaded, dict) or not all(isinstance(t, Tensor) for t in loaded.values()):
        raise ExportError(f"{file}: not a table of weights")
    return loaded
