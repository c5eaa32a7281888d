"""Dashboard, alerts and docs speak of the metrics that the server has, and of all of them."""

import re
import sys
from functools import cache

import pytest

from support import ROOT
from support import deploy_expressions as expressions
from support.deploy_tools import DEPLOY, read_yaml, run, tool
from support.service_running import Running

PROMETHEUS = DEPLOY / "prometheus"
NAME = re.compile(r"\bdragoman_\w+")
SELECTOR = re.compile(r"\b(dragoman_\w+)\{([^}]*)\}")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


@pytest.fixture(scope="module")
def exported(running: Running) -> dict[str, set[str]]:
    """Series as a scrape of the real server has them, with their labels."""
    found: dict[str, set[str]] = {}
    for series in running.metrics():
        name, _, labels = series.partition("{")
        found.setdefault(name, set()).update(re.findall(r"(\w+)=\"", labels))
    return found


def family(series: str) -> str:
    return re.sub(r"_(bucket|sum|count)$", "", series)


@cache
def used() -> dict[str, str]:
    """Expressions by where they are; those that recorded rules stand for are among them."""
    return {
        where: expression
        for where, expression in expressions.everything().items()
        if not where.startswith("recorded ")
    }


def test_every_metric_that_is_asked_for_is_exported(exported: dict[str, set[str]]) -> None:
    records = set(expressions.rules("record"))
    for where, expression in used().items():
        recorded = {name for name in records if name in expression}
        for name in recorded:
            expression = expression.replace(name, "")
        assert ":" not in expression, f"{where}: no such record in {expression}"
        asked = set(NAME.findall(expression))
        assert asked or recorded or "up{" in expression, where
        assert asked <= set(exported), where


def test_every_label_that_is_asked_for_is_exported(exported: dict[str, set[str]]) -> None:
    of_targets = {"instance", "job", "namespace", "pod"}
    for where, expression in used().items():
        for name, matchers in SELECTOR.findall(expression):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            assert labels <= exported[name] | of_targets, where
        names = set(NAME.findall(expression)) & set(exported)
        there = set().union(*(exported[name] for name in names))
        for group in re.findall(r"\b(?:by|without) \(([^)]*)\)", expression):
            labels = {label.strip() for label in group.split(",")}
            assert labels <= there | of_targets, where


def test_every_value_of_a_label_that_is_asked_for_is_exported(running: Running) -> None:
    """Codes and reasons are in the dashboard and in the rules too."""
    text = "\n".join(running.metrics())
    for where, expression in used().items():
        for label, listed in re.findall(r"(code|reason|outcome)=~?\"([^\"]*)\"", expression):
            for value in listed.split("|"):
                assert f'{label}="{value}"' in text, f"{where}: {value}"


def test_every_exported_metric_is_on_the_dashboard_and_in_the_docs(
    exported: dict[str, set[str]],
) -> None:
    everywhere = {family(name) for name in exported}
    shown = {
        family(name)
        for where, expression in used().items()
        if where.startswith("panel")
        for name in NAME.findall(expression)
    }
    page = (ROOT / "docs" / "metrics.md").read_text()
    assert shown == everywhere
    assert {family(name) for name in NAME.findall(page)} >= everywhere
    assert set(re.findall(r"^\| `(\w+:[\w:]+)`", page, re.MULTILINE)) == set(
        expressions.rules("record")
    )


def test_docs_name_no_metric_that_is_not_exported(exported: dict[str, set[str]]) -> None:
    offered = {rule["name"]["as"] for rule in read_yaml(expressions.ADAPTER)["rules"]}
    packages = {
        *("dragoman_cli", "dragoman_client", "dragoman_export", "dragoman_server"),
        *("dragoman_documents", "dragoman_training"),
    }
    families = {family(name) for name in exported}
    for page in (*(ROOT / "docs").glob("*.md"), *DEPLOY.rglob("*.yaml")):
        text = page.read_text()
        for record in expressions.rules("record"):
            text = text.replace(record, "")
        named = {family(name) for name in NAME.findall(text)}
        if page.name == "architecture.md" or page.parent.name == "tests":
            continue  # packages by name; series of tests
        assert named - packages <= families | offered, page


def test_the_dashboard_is_fresh() -> None:
    made = run(sys.executable, DEPLOY / "grafana" / "dashboard.py")
    assert made == expressions.DASHBOARD.read_text(), "run `make dashboard`"


def test_every_alert_has_a_section_on_what_to_do() -> None:
    sections = re.split(r"^### ", OPERATIONS, flags=re.MULTILINE)[1:]
    texts = {section.split("\n", 1)[0].strip(): section for section in sections}
    alerts = expressions.rules("alert")
    assert {name for name in texts if name.startswith("Dragoman")} == set(alerts)
    for name, rule in alerts.items():
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{name.lower()}"
        assert len(texts[name].split()) > 40, name


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    cases = [
        case
        for test in read_yaml(PROMETHEUS / "tests" / "alerts_test.yaml")["tests"]
        for case in test["alert_rule_test"]
    ]
    alerts = set(expressions.rules("alert"))
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


def test_rules_and_their_cases_pass_promtool() -> None:
    promtool = tool("Debian's package prometheus", "promtool")
    run(promtool, "check", "rules", "--lint-fatal", *expressions.RULES)
    run(promtool, "check", "config", PROMETHEUS / "prometheus.yml")
    run(promtool, "test", "rules", *sorted((PROMETHEUS / "tests").glob("*.yaml")))


def test_what_is_exported_passes_promtool(running: Running) -> None:
    import urllib.request

    promtool = tool("Debian's package prometheus", "promtool")
    url = f"http://{running.server.metrics_address}/metrics"
    with urllib.request.urlopen(url, timeout=60) as response:
        text = response.read().decode()
    assert run(promtool, "check", "metrics", input=text) == ""
