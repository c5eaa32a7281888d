"""What a file of a Marian model holds, in whichever form: weights and the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CONFIG = "special:model.yml"
"""Name under which a file has the model's configuration, as YAML."""
SPECIAL = "special:"
"""How the names of what is no weight begin."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Weight:
    """One weight of a model."""

    values: Floats
    """Values, in the shape that the file names; matrices are [in, out], tables [token, width]."""
    multiplier: float = 0.0
    """Number that makes the values whole, from -127 to 127, if the file has 8 bits of each;
    otherwise 0."""

    @property
    def step(self) -> float:
        """Difference of two neighbouring values that 8 bits can have; 0 if the file has floats."""
        return 1 / self.multiplier if self.multiplier else 0.0


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A file of a Marian model."""

    weights: Mapping[str, Weight]
    """Weights by their names, and the multipliers of activations among them."""
    config: str
    """Configuration of the model, as YAML."""


def decoded_text(name: str, data: bytes) -> str:
    """Return the text of an item, which ends with a zero. Raises ``ValueError`` if it is none."""
    try:
        return data.split(b"\0", 1)[0].decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not text") from None


def checked_name(name: str, seen: Mapping[str, object]) -> str:
    """Return the name of an item. Raises ``ValueError`` if it stands in the file twice."""
    if name in seen:
        raise ValueError(f"has {name} twice")
    return name
