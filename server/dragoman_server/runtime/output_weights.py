"""The output weights of all target tokens, read from a bundle's graph that knows where they are."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.runtime.arrays import Floats


@dataclass(frozen=True, eq=False)
class OutputWeights:
    """The output weights of all target tokens, quantized to int8."""

    matrix: npt.NDArray[np.int8]
    """Weights, a row for each target token."""
    scales: Floats
    """Quantization scale of each target token: its weights are the integers times this."""
    biases: Floats | None
    """Bias of each target token; None where the model has no biases."""

    @classmethod
    def read(cls, session: ort.InferenceSession, vocabulary: int, width: int) -> "OutputWeights":
        """Run the graph that gives weights away. Raises ``ValueError`` if it is another graph."""
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
