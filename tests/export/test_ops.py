"""Every op of the graphs, alone: a row's bits don't depend on the batch, whatever CPU this is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from dragoman_export.bundle_files import write_unverified
from dragoman_export.errors import VerificationError
from dragoman_export.proofs.batch_invariance import check_batch_invariance, compare
from dragoman_export.proofs.node_values import Batch
from dragoman_export.proofs.ops import REASONS, Dependence, dependent_nodes, kinds
from dragoman_server.bundle.graph_io import DECODER, ENCODER, GRAPHS, SHORTLIST_GRAPHS
from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from support import ROOT
from support.models import random_sources, tiny_model

REAL: dict[str, Any] = {"width": 512, "heads": 8, "feed_forward": 2048, "max_length": 64}
"""Sizes that published models have; kernels are chosen by them."""
VOCABULARY = 1024
BATCHES = {"encoder.onnx": Batch.of(9, 40, 37), "decoder.onnx": Batch.of(33, 40, 300)}
ARCHITECTURES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("float32", {"norm": "post", "activation": "relu"}, ()),
    ("float32", {"norm": "pre", "activation": "gelu", "decoder": "ssru"}, ()),
    ("int8", {"norm": "post", "activation": "swish", "output_bias": True}, ("*.widen",)),
]


def written(
    directory: Path, precision: str = "float32", keep: tuple[str, ...] = (), **settings: Any
) -> UncheckedBundle:
    """The graphs of a seeded model, with a shortlist where there can be one."""
    sizes = {"encoder_layers": 1, "decoder_layers": 1, **settings}
    likely = np.tile(np.arange(40, 44, dtype=np.int32), (VOCABULARY, 1))
    return write_unverified(
        tiny_model(3, vocabulary=VOCABULARY, **sizes),
        directory,
        precision,
        calibration=[[7, 8, 9]],
        keep_float32=keep,
        shortlist=Shortlist(np.arange(3, 9, dtype=np.int32), likely)
        if precision == "int8"
        else None,
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
@pytest.mark.parametrize("precision", ["float32", "int8", "float16"])
def test_no_graph_has_an_op_that_nobody_looked_at(
    precision: str, activation: str, norm: str, tmp_path: Path
) -> None:
    """As onnxruntime runs them: its optimizers put in ops of their own."""
    keep = ("*_output", "*.narrow") if precision == "int8" and norm == "pre" else ()
    decoder = "ssru" if norm == "post" else "attention"
    written(tmp_path, precision, keep, activation=activation, norm=norm, decoder=decoder)
    names = (*GRAPHS, *(SHORTLIST_GRAPHS if precision == "int8" else ()))
    assert {kind for name in names for kind in kinds(tmp_path / name)} <= REASONS.keys()


@pytest.mark.parametrize(("precision", "settings", "keep"), ARCHITECTURES, ids=str)
def test_every_op_gives_a_row_the_same_bits_in_every_batch(
    precision: str, settings: dict[str, Any], keep: tuple[str, ...], tmp_path: Path
) -> None:
    written(tmp_path, precision, keep, **REAL, **settings)
    names = [ENCODER, DECODER, *(SHORTLIST_GRAPHS[:1] if precision == "int8" else ())]
    for name in names:
        batch = BATCHES.get(name, BATCHES[DECODER])
        assert [*dependent_nodes(tmp_path / name, batch, threads=(1, 2))] == []


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_model_of_real_sizes_gives_the_same_bits_in_any_company(
    precision: str, tmp_path: Path
) -> None:
    bundle = written(tmp_path, precision, **REAL, activation="swish")
    graphs = Graphs(bundle, GraphSettings(rows=24))
    found = compare(graphs, random_sources(8, seed=2, longest=40), batches=40)
    assert found.compared > 300
    assert (found.different, found.other_alignments) == (0, 0)


def put_in(graph: Path, change: Callable[[onnx.GraphProto], None]) -> None:
    """Change the nodes of a graph on disk."""
    model = onnx.load(graph, load_external_data=False)
    change(model.graph)
    graph.write_bytes(model.SerializeToString())


def reduce_by_mean(graph: onnx.GraphProto) -> None:
    """Take the mean of the heads by the op that is made for it."""
    (split,) = (node for node in graph.node if node.op_type == "Split")
    (made,) = (node for node in graph.node if node.output[0] == "alignment")
    made.CopyFrom(
        helper.make_node("ReduceMean", [split.input[0], "ints_1_2"], ["alignment"], keepdims=0)
    )


def reduces_in_one_order() -> bool:
    """Whether this CPU adds eight heads up alike for one row and for two."""
    node = helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=0)
    graph = helper.make_graph(
        [node],
        "mean",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 1, "s"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "s"])],
        [helper.make_tensor("axes", TensorProto.INT64, [2], [1, 2])],
    )
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).random((33, 8, 1, 40), np.float32)
    together, alone = (session.run(None, {"x": part})[0][0] for part in (x, x[:1]))
    return bool((together == alone).all())


def test_a_mean_of_heads_is_named_where_the_cpu_takes_it_in_another_order(tmp_path: Path) -> None:
    """This is what kept OPUS-MT out on CPUs with AVX512; others may find nothing wrong with it."""
    written(tmp_path, **REAL)
    put_in(tmp_path / DECODER, reduce_by_mean)
    assert "ReduceMean" in kinds(tmp_path / DECODER) - REASONS.keys()
    found = [*dependent_nodes(tmp_path / DECODER, BATCHES[DECODER])]
    assert [each.op for each in found] == ([] if reduces_in_one_order() else ["ReduceMean"])


def scale_by_largest(graph: onnx.GraphProto) -> None:
    """Divide logits by the largest of the batch, as one scale for a whole tensor would."""
    (last,) = (node for node in graph.node if node.op_type == "LogSoftmax")
    logits = last.input[0]
    last.input[0] = "scaled"
    place = list(graph.node).index(last)
    graph.node.insert(place, helper.make_node("Div", [logits, "largest"], ["scaled"], "scale"))
    graph.node.insert(
        place, helper.make_node("ReduceMax", [logits], ["largest"], "find", keepdims=0)
    )


def test_a_scale_of_the_whole_batch_is_named_on_every_cpu(tmp_path: Path) -> None:
    """The proof of the whole model fails, and says by which op."""
    bundle = written(tmp_path, max_length=40)
    graphs = Graphs(bundle, GraphSettings(rows=8))
    check_batch_invariance(graphs, random_sources(5, seed=1), batches=10, directory=tmp_path)
    put_in(tmp_path / DECODER, scale_by_largest)
    (found,) = dependent_nodes(tmp_path / DECODER, Batch.of(9, 30, 37))
    assert found == Dependence("ReduceMax", "find", "largest", rows=2, threads=1)
    graphs = Graphs(bundle, GraphSettings(rows=8))
    with pytest.raises(VerificationError, match=r"in the batch: ReduceMax \(find\) gives largest"):
        check_batch_invariance(graphs, random_sources(5, seed=1), batches=10, directory=tmp_path)


def test_the_decision_on_ops_lists_them_all() -> None:
    page = (ROOT / "docs/decisions/014-ops-and-batches.md").read_text()
    for kind, reason in REASONS.items():
        assert f"`{kind}`" in page
        assert reason in page
