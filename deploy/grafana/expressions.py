"""Expressions of PromQL over the servers and models that were chosen on the dashboard."""

from panels import Query

ALL = 'instance=~"$instance"'
MODEL = f'{ALL}, model=~"$model"'
FAULTS = 'code=~"UNKNOWN|INTERNAL|UNAVAILABLE|DATA_LOSS|DEADLINE_EXCEEDED"'
"""Codes that the server is to blame for, as in prometheus/rules."""


def rate(metric: str, labels: str = MODEL) -> str:
    """Return the rate of a counter, by second."""
    return f"rate(dragoman_{metric}{{{labels}}}[$__rate_interval])"


def total(by: str, metric: str, labels: str = MODEL) -> str:
    """Return the rate of a counter over all servers, by label."""
    return f"sum by ({by}) ({rate(metric, labels)})"


def increases(metric: str) -> str:
    """Return how often something rare was counted, by model."""
    return f"sum by (model) (increase(dragoman_{metric}{{{MODEL}}}[$__rate_interval]))"


def percentile(part: float, metric: str, by: str = "model", labels: str = MODEL) -> str:
    """Return a percentile of a histogram, by label."""
    buckets = total(f"{by}, le" if by else "le", f"{metric}_bucket", labels)
    return f"histogram_quantile({part}, {buckets})"


def percentiles(metric: str, by: str = "model", labels: str = MODEL) -> list[Query]:
    """Return the median and two high percentiles of a histogram, each with its legend."""
    legend = f"{{{{{by}}}}} " if by else ""
    return [
        Query(percentile(part, metric, by, labels), f"{legend}p{part * 100:.0f}")
        for part in (0.5, 0.95, 0.99)
    ]


def gauge(function: str, by: str, metric: str, labels: str = MODEL) -> str:
    """Return a gauge over all servers, by label."""
    return f"{function} by ({by}) (dragoman_{metric}{{{labels}}})"
