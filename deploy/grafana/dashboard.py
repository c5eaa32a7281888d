"""Writes the dashboard that ``make dashboard`` puts next to this file.

    python deploy/grafana/dashboard.py > deploy/grafana/dashboards/dragoman.json

docs/metrics.md says what each metric is. Expressions ask for the series of the servers and models
that were chosen on the dashboard; rates are over ``$__rate_interval``, which Grafana makes four
scrapes long or more.
"""

import json
import sys
from itertools import count
from typing import Any

from expressions import ALL, FAULTS, MODEL, gauge, increases, percentile, percentiles, rate, total
from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from panels import Query, choice_of, choice_of_source, graph, stat_of, table_of


def overview() -> list[Any]:
    errors = f"sum({rate('requests_total', f'{ALL}, {FAULTS}')})"
    every = f"sum({rate('requests_total', ALL)})"
    return [
        stat_of(
            "Servers that are ready",
            f"sum(dragoman_ready{{{ALL}}})",
            "none",
            "They take requests.",
        ),
        stat_of("Calls", every, "reqps", "That ended, however."),
        stat_of(
            "Errors",
            f"{errors} / ({every} > 0)",
            "percentunit",
            "The server's, of all calls.",
            0.05,
        ),
        stat_of(
            "First token, p95",
            percentile(0.95, "time_to_first_token_seconds", ""),
            "s",
            "From the queue, by sentence.",
            2,
        ),
        stat_of(
            "Queue, p95",
            percentile(0.95, "queue_wait_seconds", ""),
            "s",
            "Until a sentence has a row.",
            1,
        ),
        stat_of(
            "Tokens written", f"sum({rate('target_tokens_total')})", "short", "A second, by all."
        ),
    ]


def traffic() -> list[Any]:
    return [
        graph(
            "Calls by kind",
            "reqps",
            "That ended, however.",
            Query(total("rpc", "requests_total", ALL), "{{rpc}}"),
            stacked=True,
        ),
        graph(
            "Calls under way",
            "none",
            "Streams among them.",
            Query(gauge("sum", "rpc", "requests_in_flight", ALL), "{{rpc}}"),
            stacked=True,
        ),
        graph(
            "Sentences by outcome",
            "short",
            "end: the model ended it; length: it was cut at the most tokens that were allowed.",
            Query(total("outcome", "sentences_total"), "{{outcome}}"),
            stacked=True,
        ),
    ]


def latency() -> list[Any]:
    return [
        graph(
            "Call, by kind",
            "s",
            "From a call's begin to its end. Bulk streams last as long as their clients like.",
            Query(percentile(0.5, "request_duration_seconds", "rpc", ALL), "{{rpc}} p50"),
            Query(percentile(0.95, "request_duration_seconds", "rpc", ALL), "{{rpc}} p95"),
            span=12,
        ),
        graph(
            "First token",
            "s",
            "From the queue to the first token, by sentence.",
            *percentiles("time_to_first_token_seconds"),
            span=12,
        ),
        graph(
            "Queue",
            "s",
            "From the queue to a row, by sentence. Grows where rows are too few.",
            *percentiles("queue_wait_seconds"),
            span=12,
        ),
        graph(
            "Between tokens",
            "s",
            "The mean of a sentence. Grows with the rows that are decoded together.",
            *percentiles("time_per_token_seconds"),
            span=12,
        ),
    ]


def batching() -> list[Any]:
    mean = f"{total('model', 'step_rows_sum')} / ({total('model', 'step_rows_count')} > 0)"
    waste = (
        f"{total('model', 'padding_tokens_total')} / "
        f"({total('model', 'padding_tokens_total')} + {total('model', 'source_tokens_total')} > 0)"
    )
    return [
        graph(
            "Rows of a step",
            "none",
            "How many hypotheses are decoded together, of each lane.",
            Query(mean, "{{model}} mean"),
            *percentiles("step_rows"),
        ),
        graph(
            "Rows that are held",
            "percentunit",
            "Of all. Near 1, sentences wait.",
            Query(gauge("avg", "model", "row_use_ratio"), "{{model}}"),
        ),
        graph(
            "Sentences that are decoded",
            "none",
            "A sentence holds one row, or as many as its beam.",
            Query(gauge("sum", "model", "running_sentences"), "{{model}}"),
        ),
        graph(
            "Decoder step", "s", "One token of every row.", *percentiles("step_duration_seconds")
        ),
        graph(
            "Encoder",
            "s",
            "Its part of a turn; the lane's decoder waits meanwhile.",
            *percentiles("encode_duration_seconds"),
        ),
        graph(
            "Padding",
            "percentunit",
            "Of what the encoder computes, for nothing.",
            Query(waste, "{{model}}"),
        ),
    ]


def tokens() -> list[Any]:
    per_sentence = (
        f"{total('model', 'target_tokens_total')} / ({total('model', 'sentences_total')} > 0)"
    )
    return [
        graph(
            "Tokens read",
            "short",
            "A second.",
            Query(total("model", "source_tokens_total"), "{{model}}"),
        ),
        graph(
            "Tokens written",
            "short",
            "A second.",
            Query(total("model", "target_tokens_total"), "{{model}}"),
        ),
        graph(
            "Tokens of a sentence",
            "none",
            "Written, on average. Near the most that is allowed: a model that repeats itself.",
            Query(per_sentence, "{{model}}"),
        ),
    ]


def saturation() -> list[Any]:
    return [
        graph(
            "Queue",
            "none",
            "Requests of which nothing has begun, and all sentences without a row.",
            Query(gauge("sum", "model", "waiting_requests"), "{{model}} requests"),
            Query(gauge("sum", "model", "waiting_sentences"), "{{model}} sentences"),
        ),
        graph(
            "Tokens in the queue",
            "short",
            "Source tokens that wait; --max-waiting-tokens is the limit.",
            Query(gauge("sum", "model", "waiting_tokens"), "{{model}}"),
        ),
        graph(
            "Event loop",
            "s",
            "How late it wakes up. Above 0.1 s the process does too much besides decoding.",
            *percentiles("event_loop_lag_seconds", "", ALL),
        ),
    ]


def errors() -> list[Any]:
    failed = f'{ALL}, code!="OK"'
    return [
        graph(
            "Calls that failed, by code",
            "reqps",
            "All of them: the server's, and those that clients got wrong.",
            Query(f"{total('code', 'requests_total', failed)} > 0", "{{code}}"),
        ),
        graph(
            "Refused, by reason",
            "reqps",
            "Calls, or items of bulk streams, that were turned away before they reached an engine.",
            Query(f"{total('reason', 'rejected_total', ALL)} > 0", "{{reason}}"),
        ),
        graph(
            "Translated again, by what was wrong",
            "reqps",
            "Sentences whose first translation was empty, repeated itself, had other numbers, or "
            "lost what was to be kept; and what was still wrong in the end.",
            Query(f"{total('reason', 'retried_sentences_total', MODEL)} > 0", "{{reason}}"),
            Query(f"{total('code', 'warnings_total', MODEL)} > 0", "still: {{code}}"),
        ),
        graph(
            "Heartbeat of the engines",
            "s",
            "Since the last sign of life of a lane that has work. At --stall the server ends.",
            Query(
                gauge("max", "instance, model", "engine_heartbeat_age_seconds"),
                "{{instance}} {{model}}",
            ),
        ),
        graph(
            "Workers lost, sentences run again",
            "none",
            "Processes that died or hung, the sentences that ran again because of it, and those "
            "that had to run alone.",
            Query(increases("lost_workers_total"), "{{model}} lost"),
            Query(increases("rerun_sentences_total"), "{{model}} run again"),
            Query(increases("quarantined_sentences_total"), "{{model}} alone"),
        ),
        graph(
            "Rows without a number",
            "none",
            "Sentences for which the model computed NaN.",
            Query(increases("nan_rows_total"), "{{model}}"),
            span=12,
        ),
        graph(
            "Steps that failed",
            "none",
            "With all sentences in them.",
            Query(increases("engine_faults_total"), "{{model}}"),
            span=12,
        ),
    ]


def loaded() -> list[Any]:
    return [
        table_of(
            "Models",
            "On each server.",
            f"dragoman_model_info{{{MODEL}}}",
            hidden=("Time", "Value", "__name__", "job"),
        ),
        graph(
            "Rows",
            "none",
            "That there are.",
            Query(gauge("sum", "model", "rows"), "{{model}}"),
            span=12,
        ),
        graph(
            "Memory",
            "bytes",
            "Reserved for the rows, which is their bound, and what the processes have.",
            Query(gauge("sum", "model", "cache_bytes"), "{{model}} reserved for rows"),
            Query(gauge("sum", "model", "resident_bytes"), "{{model}} resident"),
            span=12,
        ),
    ]


SECTIONS = {
    "Overview": overview,
    "Traffic": traffic,
    "Latency": latency,
    "Batching and rows": batching,
    "Tokens": tokens,
    "Saturation": saturation,
    "Errors": errors,
    "Models": loaded,
}


def build() -> models.Dashboard:
    made = (
        dashboard.Dashboard("Dragoman")
        .uid("dragoman")
        .description("A translation server: traffic, latency, batching, saturation, errors.")
        .tags(["dragoman"])
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(choice_of_source())
        .with_variable(choice_of("instance", "Server", "dragoman_ready"))
        .with_variable(choice_of("model", "Model", "dragoman_model_info"))
    )
    number = count(1)  # links to a panel hold its number
    for title, section in SECTIONS.items():
        made.with_row(dashboard.Row(title).id(next(number)))
        for panel in section():
            made.with_panel(panel.id(next(number)))
    return made.build()


if __name__ == "__main__":
    json.dump(build(), sys.stdout, cls=JSONEncoder, indent=2, sort_keys=True)
    sys.stdout.write("\n")
