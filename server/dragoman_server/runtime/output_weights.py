"""The output weights of all target tokens, read from a bundle's graph that knows where they are."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.runtime.arrays import Floats


@dataclass(frozen=True, eq=False)
class OutputWeights:
    """Of all target tokens: a line for each."""

    matrix: npt.NDArray[np.int8]
    scales: Floats
    biases: Floats | None

    @classmethod
    def read(cls, session: ort.InferenceSession, vocabulary: int, width: int) -> "OutputWeights":
        """From the graph that knows where they are. ``ValueError`` where it is another graph."""
        names = [output.name for output in session.get_outputs()]
        try:
            values = session.run(names, {"ids": np.arange(vocabulary)})
        except Exception as error:  # onnxruntime has no common class for them
            raise ValueError(str(error).splitlines()[0]) from None
        found = dict(zip(names, values, strict=True))
        if not {"weights", "steps"} <= found.keys() <= {"weights", "steps", "biases"}:
            raise ValueError(f"its outputs are {', '.join(names)}")
        shapes = {"weights": (width, vocabulary), "steps": (vocabulary,), "biases": (vocabulary,)}
        for name, value in found.items():
            kind = np.int8 if name == "weights" else np.float32
            if value.shape != shapes[name] or value.dtype != kind:
                raise ValueError(f"{name} are of shape {value.shape} and type {value.dtype}")
        return cls(np.ascontiguousarray(found["weights"].T), found["steps"], found.get("biases"))
