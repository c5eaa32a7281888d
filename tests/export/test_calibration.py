"""The ranges that int8 is calibrated to: both ends, as they were seen, and as graphs have them."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from dragoman_export.bundle_files import write_unverified
from dragoman_export.graphs.calibration import SHARE, InputRanges, input_ranges
from dragoman_export.graphs.weights import weights_for_graphs
from dragoman_server.bundle.graph_io import DECODER
from dragoman_training.data.batch import pad_sources
from dragoman_training.translate.search import default_limit, greedy_search
from support.models import random_sources, tiny_model


def test_a_range_leaves_out_the_few_farthest_of_each_end() -> None:
    generator = torch.Generator().manual_seed(1)
    seen = InputRanges()
    batches = [torch.randn(40, 10_000, generator=generator) * size - 1 for size in (1, 3, 2)]
    for batch in batches:
        seen.note("product", batch)
    beyond = int(400_000 * (1 - SHARE))
    assert beyond == 3
    ends = [batch.flatten().sort().values for batch in batches]
    assert seen.highest == {"product": max(float(each[-beyond]) for each in ends)}
    assert seen.lowest == {"product": min(float(each[beyond - 1]) for each in ends)}
    seen.note("positive", torch.ones(3, 3))
    assert (seen.lowest["positive"], seen.highest["positive"]) == (0, 1)


def test_translations_that_are_given_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    model, sources = tiny_model(seed=2), [*random_sources(6, seed=1), []]
    weights = weights_for_graphs(model)
    expected = input_ranges(model, weights, sources)
    limits = [default_limit(len(source), 40) for source in sources]
    found = greedy_search(model, *pad_sources(sources, torch.device("cpu")), limits)
    monkeypatch.setattr("dragoman_export.graphs.calibration.greedy_search", None)
    given = input_ranges(model, weights, sources, translations=[each.ids for each in found])
    for ours, theirs in ((given.highest, expected.highest), (given.lowest, expected.lowest)):
        assert ours == pytest.approx(theirs, abs=1e-5)
        assert {*ours} == {linear.name for linear in weights.linears()}


def zeros(path: Path) -> dict[str, int]:
    """The whole number that 0 becomes, by product."""
    graph = onnx.load(path / DECODER).graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    return {
        node.input[1].removesuffix(".step"): int(constants[node.input[2]].item())
        for node in graph.node
        if node.op_type == "QuantizeLinear"
    }


@pytest.mark.parametrize(
    ("activation", "lowest"), [("swish", -0.2785), ("gelu", -0.17), ("relu", 0)]
)
def test_no_number_is_kept_for_what_an_activation_never_gives(
    activation: str, lowest: float, tmp_path: Path
) -> None:
    """Half of the 256 would be, if they lay evenly around 0: fr-en of OPUS-MT lost 0.7 BLEU."""
    model = tiny_model(seed=2, activation=activation)
    with torch.no_grad():
        for module in model.decoder:
            module.feed_forward.widen.weight.mul_(6)  # type: ignore[union-attr, operator]
    sources = random_sources(20, seed=1)
    ranges = input_ranges(model, weights_for_graphs(model), sources)
    write_unverified(model, tmp_path, "int8", calibration=sources)
    found = zeros(tmp_path)
    name = "decoder.0.feed_forward.narrow"
    highest = ranges.highest[name]
    assert highest > 2
    assert ranges.lowest[name] >= lowest - 1e-3 or activation == "relu"
    assert found[name] == pytest.approx(-lowest * 255 / (highest - lowest), abs=1.5)
    assert all(64 < zero < 192 for product, zero in found.items() if "narrow" not in product)


def test_both_ends_of_a_range_survive(tmp_path: Path) -> None:
    """A step reaches from the lowest to the highest, so that neither is cut off."""
    model, sources = tiny_model(seed=2, activation="swish"), random_sources(20, seed=1)
    ranges = input_ranges(model, weights_for_graphs(model), sources)
    write_unverified(model, tmp_path, "int8", calibration=sources)
    steps = {
        each.name: float(numpy_helper.to_array(each).item())
        for each in onnx.load(tmp_path / DECODER).graph.initializer
        if each.name.endswith(".step")
    }
    for product, zero in zeros(tmp_path).items():
        step = steps[f"{product}.step"]
        assert (0 - zero) * step == pytest.approx(ranges.lowest[product], abs=step)
        assert (255 - zero) * step == pytest.approx(ranges.highest[product], abs=step)
    assert len(steps) == len({*steps.values()}) > 10
    assert np.isfinite(list(steps.values())).all()
