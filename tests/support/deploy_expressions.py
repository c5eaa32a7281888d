"""Every expression of PromQL in deploy/, by where it is."""

import json
import re
from collections.abc import Iterator
from typing import Any

from support.deploy_tools import DEPLOY, read_yaml

RULES = sorted((DEPLOY / "prometheus" / "rules").glob("*.yaml"))
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "dragoman.json"
ADAPTER = DEPLOY / "kubernetes" / "prometheus-adapter.yaml"
POD = {"namespace": "somewhere", "pod": "dragoman-1"}
"""Labels as pods' metrics have them."""

_FILLED = {
    "$__rate_interval": "1m",
    "$instance": ".*",
    "$model": ".*",
    "<<.GroupBy>>": "pod",
    "<<.LabelMatchers>>": ", ".join(f'{name}="{value}"' for name, value in POD.items()),
}
"""What Grafana and the adapter put in place of what they let one write."""
_COMPARISON = re.compile(r"(?P<value>.*?)\s*(?:[<>=!]=?)\s*[\d.]+", re.DOTALL)


def filled(expression: str) -> str:
    for name, value in _FILLED.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    assert "<<" not in expression, expression
    return expression


def rules(kind: str) -> dict[str, dict[str, Any]]:
    """Alerts, or records, by name."""
    found = [
        rule
        for path in RULES
        for group in read_yaml(path)["groups"]
        for rule in group["rules"]
        if kind in rule
    ]
    assert len({rule[kind] for rule in found}) == len(found)
    return {rule[kind]: rule for rule in found}


def panels() -> Iterator[tuple[str, str]]:
    """Titles and expressions."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def adapter() -> str:
    (rule,) = read_yaml(ADAPTER)["rules"]
    series = rule["seriesQuery"].partition("{")[0]
    return filled(rule["metricsQuery"].replace("<<.Series>>", series))


def value_of(alert: str) -> str:
    """What an alert compares with its threshold: it has a value also while nothing is wrong."""
    if absent := re.fullmatch(r"absent\((.*)\)", alert):
        return absent[1]
    found = _COMPARISON.fullmatch(alert)
    assert found, f"{alert!r} is no comparison with a number"
    return found["value"]


def everything() -> dict[str, str]:
    """Expressions that return data while a server is at work, by where they are."""
    found = {f"panel {title}, {number}": filled(e) for number, (title, e) in enumerate(panels())}
    found |= {f"record {name}": rule["expr"] for name, rule in rules("record").items()}
    found |= {f"recorded {name}": name for name in rules("record")}
    found |= {f"alert {name}": value_of(rule["expr"]) for name, rule in rules("alert").items()}
    found["adapter"] = adapter()
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    for variable in variables:
        if of_metric := re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]):
            metric, label = of_metric.groups()
            found[f"variable {label}"] = f'{metric}{{{label}!=""}}'
    return found
