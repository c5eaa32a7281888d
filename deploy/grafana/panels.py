"""Kinds of panels that the dashboard is made of; what they show is said in ``dashboard``.

Everything here speaks of grafana-foundation-sdk, and nothing of what Dragoman measures.
"""

from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""Chosen on the dashboard, so that it loads into any Grafana."""
WIDTH = 24
"""Of a row of the grid."""


@dataclass(frozen=True)
class Query:
    expression: str
    legend: str = ""


def stat_of(title: str, query: str, unit: str, text: str, worse_above: float | None = None) -> Any:
    """One figure; red above a threshold."""
    steps = [models.Threshold(color="green", value=None)]
    if worse_above is not None:
        steps.append(models.Threshold(color="red", value=worse_above))
    return (
        stat.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .height(4)
        .span(4)
        .graph_mode(common_models.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        .with_target(prometheus.Dataquery().expr(query).ref_id("A"))
    )


def graph(
    title: str, unit: str, text: str, *queries: Query, span: int = 8, stacked: bool = False
) -> Any:
    """Lines over time."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .height(8)
        .span(span)
        .min(0)
        .fill_opacity(25 if stacked else 5)
        .show_points(common_models.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL).group("A"))
    for letter, query in zip("ABCDEFGH", queries, strict=False):
        panel.with_target(
            prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter)
        )
    return panel


def table_of(title: str, text: str, query: str, hidden: tuple[str, ...], span: int = WIDTH) -> Any:
    """The labels of series, one line each."""
    transformation = models.DataTransformerConfig(
        id_val="organize", options={"excludeByName": dict.fromkeys(hidden, True)}
    )
    return (
        table.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .height(6)
        .span(span)
        .with_transformation(transformation)
        .with_target(
            prometheus.Dataquery()
            .expr(query)
            .instant()
            .format(prometheus_models.PromQueryFormat.TABLE)
            .ref_id("A")
        )
    )


def choice_of_source() -> Any:
    return dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")


def choice_of(name: str, label: str, metric: str) -> Any:
    """Of all values that a label has on a metric."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(f"label_values({metric}, {name})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(selected=True, text="All", value="$__all"))
    )
