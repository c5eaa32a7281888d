"""Bundles whose sentences depend on what else is in the batch: noticed where they are served."""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import helper

from dragoman_server.bundle.graph_io import DECODER
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.errors import BundleError, ServerError
from dragoman_server.runtime.checks.company import alignments_depend_on_company
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from support.bundles import trained_bundle
from support.command import dragoman
from support.service_running import few_rows, serving, settings_for


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained_bundle("int8").path, tmp_path / "bundle"))


def add_of_batch(output: str) -> Callable[[onnx.GraphProto], None]:
    """Let an output of the decoder depend a little on the sum of all rows' vectors."""

    def change(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [f"{output}_own" if name == output else name for name in names]
        tiny = helper.make_tensor("tiny", onnx.TensorProto.FLOAT, [], [1e-6])
        graph.initializer.append(tiny)
        graph.node.extend(
            [
                helper.make_node("ReduceL1", ["row_sums"], ["of_batch"], keepdims=0),
                helper.make_node("Mul", ["of_batch", "tiny"], ["some_of_batch"]),
                helper.make_node("Add", [f"{output}_own", "some_of_batch"], [output]),
            ]
        )

    return change


def put_in(bundle: Path, change: Callable[[onnx.GraphProto], None]) -> None:
    """Change the decoder of a bundle, and what its manifest says of it."""
    graph = bundle / DECODER
    model = onnx.load(graph, load_external_data=False)
    change(model.graph)
    content = model.SerializeToString()
    graph.write_bytes(content)
    manifest = json.loads((bundle / "manifest.json").read_text())
    digest = hashlib.sha256(content).hexdigest()
    manifest["files"][DECODER] = {"bytes": len(content), "sha256": digest}
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def depend(path: Path, rows: int) -> bool:
    bundle = read_bundle(path)
    return alignments_depend_on_company(bundle, Graphs(bundle, GraphSettings(rows=rows)))


def test_a_bundle_as_it_was_exported_has_nothing_to_say(bundle: Path) -> None:
    for rows in (1, 2, 9):
        assert not depend(bundle, rows)
    assert "depend" not in dragoman("verify", str(bundle)).stdout


def test_an_alignment_that_depends_on_company_is_told_and_served(
    bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings_for(bundle, engine=few_rows(8))) as running:
        expected = running.translate("the goat of mouse is there number 1")
    assert "alignment" not in caplog.text
    put_in(bundle, add_of_batch("alignment"))
    assert not depend(bundle, 1)
    assert depend(bundle, 2)
    with serving(settings_for(bundle, engine=few_rows(8))) as running:
        assert running.translate("the goat of mouse is there number 1") == expected
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert any("last bits of an alignment depend on what else" in line for line in warnings)
    told = dragoman("verify", str(bundle))
    assert told.returncode == 0
    assert "last bits of alignments depend on the batch on this CPU" in told.stdout


def test_a_score_that_depends_on_company_is_refused(bundle: Path) -> None:
    put_in(bundle, add_of_batch("top_log_probs"))
    with pytest.raises(BundleError, match="golden sentence 1 has other scores in a batch of 2"):
        depend(bundle, 2)
    with (
        pytest.raises((BundleError, ServerError), match="other scores in a batch of 8 than alone"),
        serving(settings_for(bundle, engine=few_rows(8))),
    ):
        pass
    told = dragoman("verify", str(bundle))
    assert told.returncode == 2
    assert "other scores in a batch of 8 than alone on this CPU" in told.stderr
