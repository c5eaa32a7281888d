"""Builds ONNX graphs node by node; weights of several graphs go into one file, each once."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

OPSET, IR_VERSION = 20, 10
MICROSOFT = "com.microsoft"
_ALIGNMENT = 64
"""Tensors begin at multiples of this many bytes, which is where cache lines begin."""
_INLINE_BYTES = 1024
"""Tensors of fewer bytes stay inside the graph."""

Array = npt.NDArray[Any]

_ELEMENT_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}


@dataclass
class WeightFile:
    """The data of tensors, one after the other; equal tensors share their place."""

    name: str
    """Name of the file, by which graphs refer to it."""
    content: bytearray = field(default_factory=bytearray)
    """Content of the file so far."""
    _places: dict[bytes, int] = field(default_factory=dict)
    """Where each tensor begins, by the hash of its data."""

    def place(self, data: bytes) -> int:
        """Return where a tensor's data begins in the file, and add it if it is new."""
        digest = hashlib.sha256(data).digest()
        if digest not in self._places:
            self.content.extend(bytes(-len(self.content) % _ALIGNMENT))
            self._places[digest] = len(self.content)
            self.content.extend(data)
        return self._places[digest]


class GraphBuilder:
    """Collects the nodes of one graph. Values are named by strings."""

    def __init__(self, name: str, weights: WeightFile) -> None:
        self._name = name
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._count = 0

    def input(self, name: str, kind: str, shape: list[int | str]) -> str:
        """Add an input, and return its name."""
        self._inputs.append(helper.make_tensor_value_info(name, _ELEMENT_TYPES[kind], shape))
        return name

    def output(self, value: str, name: str, kind: str, shape: list[int | str]) -> None:
        """Give a value the name under which it leaves the graph."""
        for node in self._nodes:
            for place, output in enumerate(node.output):
                if output == value:
                    node.output[place] = name
            for place, used in enumerate(node.input):
                if used == value:
                    node.input[place] = name
        self._outputs.append(helper.make_tensor_value_info(name, _ELEMENT_TYPES[kind], shape))

    def constant(self, name: str, value: Array) -> str:
        """Add a weight or a small constant, and return its name. An equal name means the same."""
        if name in self._initializers:
            return name
        value = np.ascontiguousarray(value)
        data = value.tobytes()
        tensor = TensorProto(
            name=name, data_type=helper.np_dtype_to_tensor_dtype(value.dtype), dims=value.shape
        )
        if len(data) < _INLINE_BYTES:
            tensor.raw_data = data
        else:
            tensor.data_location = TensorProto.EXTERNAL
            facts = {
                "location": self._weights.name,
                "offset": self._weights.place(data),
                "length": len(data),
            }
            for key, fact in facts.items():
                tensor.external_data.add(key=key, value=str(fact))
        self._initializers[name] = tensor
        return name

    def ints(self, *values: int) -> str:
        """Add a constant list of integers, and return its name."""
        return self.constant(f"ints_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def scalar(self, name: str, value: float, kind: Any) -> str:
        """Add a constant of no dimension, and return its name."""
        return self.constant(name, np.array(value, kind))

    def add(
        self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any
    ) -> Any:
        """Add a node. Returns the name of its only output, or a list of names."""
        self._count += 1
        names = [f"{op.lower()}_{self._count}" + f"_{i}" * (outputs > 1) for i in range(outputs)]
        self._nodes.append(
            helper.make_node(
                op, list(inputs), names, f"{op}_{self._count}", domain=domain, **attributes
            )
        )
        return names[0] if outputs == 1 else names

    def save(self, path: Path) -> None:
        """Write the graph as an ONNX file."""
        graph = helper.make_graph(
            self._nodes,
            self._name,
            self._inputs,
            self._outputs,
            initializer=list(self._initializers.values()),
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        model.producer_name = "dragoman"
        path.write_bytes(model.SerializeToString(deterministic=True))
