"""docs/metrics.md names every metric that the server exports, with its type and labels."""

import re

import pytest
from prometheus_client import CollectorRegistry

from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.grpc_api.handlers import RPCS
from dragoman_server.service.telemetry.metrics import REJECTIONS, Metrics
from support import ROOT

PAGE = (ROOT / "docs" / "metrics.md").read_text()
ROW = re.compile(r"^\| `(dragoman_\w+)` \| (\w+) \|(.*?)\| (.*) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    """Of a server with one model."""
    made = Metrics(CollectorRegistry())
    made.add_rpcs(RPCS)
    bundle = read_bundle(ROOT / "models" / "en-pt")
    engine = Engine(bundle, EngineSettings(rows=2), lambda report: None)
    made.add_model("en-pt", engine)
    return made


def test_the_page_names_what_is_exported(metrics: Metrics) -> None:
    described = {
        name: (kind, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels, _ in ROW.findall(PAGE)
    }
    exported: dict[str, tuple[str, set[str]]] = {}
    for family in metrics.registry.collect():
        name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        exported[name] = family.type, labels
    assert described == exported


def test_the_page_names_every_reason_and_outcome(metrics: Metrics) -> None:
    texts = {name: set(re.findall(r"`(\w+)`", text)) for name, _, _, text in ROW.findall(PAGE)}
    assert texts["dragoman_rejected_total"] == set(REJECTIONS)
    assert texts["dragoman_sentences_total"] == {
        sample.labels["outcome"]
        for family in metrics.registry.collect()
        for sample in family.samples
        if "outcome" in sample.labels
    }
