"""All that is exported to Prometheus, and the only module that speaks to it.

Labels have few values, all known at the start: calls by name, codes of gRPC, models that are
loaded, reasons from lists in the code. What a client makes up never becomes a label.
docs/metrics.md describes each metric.
"""

from collections.abc import Callable, Iterable, Sequence

import prometheus_client
from grpc import StatusCode
from prometheus_client import CollectorRegistry, Counter, Gauge, Info
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman_server.engine.core import Answer, Failure, Finish, Report
from dragoman_server.engine.front import Front
from dragoman_server.service.telemetry.series import Counters, Gauges, Histograms

CALL_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Seconds of a call: from a short sentence on a small model to the longest deadline."""
STEP_SECONDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1)
"""Seconds of a step, and between two tokens: a token is a step."""
ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256)
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)

REJECTIONS = (
    *("QUEUE_FULL", "TOO_MANY_CALLS", "DEADLINE_UNREACHABLE"),
    *("STARTING", "DRAINING", "ENGINE_STOPPED"),
    *("NO_KEY", "WRONG_KEY", "NOT_ALLOWED"),
)
"""Reasons for which a call is turned away before it reaches an engine."""
RETRIES = ("masks", "empty", "loop", "numbers", "markup")
"""What was wrong with a translation that is done again."""
WARNINGS = ("empty", "loop", "numbers", "glossary")
"""What may be wrong with a translation that is returned."""
OUTCOMES = (*(f.value for f in Finish), *(f.value for f in Failure))
"""What becomes of a sentence."""


# They are a time for each series, which nobody asks for.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._engines: dict[str, Front] = {}

        def counter(name: str, text: str, *labels: str) -> Counters:
            return Counters(name, text, labels, registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"dragoman_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, bounds: Sequence[float], *labels: str) -> Histograms:
            return Histograms(name, text, bounds, labels, registry)

        self.requests = counter("requests_total", "Calls that ended.", "rpc", "code")
        self.in_flight = Gauges("requests_in_flight", "Calls under way.", ["rpc"], registry)
        self.duration = histogram(
            "request_duration_seconds",
            "Seconds from the arrival of a call to its end.",
            CALL_SECONDS,
            "rpc",
        )
        self.rejected = counter(
            "rejected_total", "Calls, or items of bulk streams, that were turned away.", "reason"
        )
        self.queue_wait = histogram(
            "queue_wait_seconds",
            "Seconds that a sentence waited for its rows.",
            CALL_SECONDS,
            "model",
        )
        self.first_token = histogram(
            "time_to_first_token_seconds",
            "Seconds from the queue to a sentence's first token.",
            CALL_SECONDS,
            "model",
        )
        self.per_token = histogram(
            "time_per_token_seconds",
            "Mean seconds between the tokens of a sentence after the first.",
            STEP_SECONDS,
            "model",
        )
        self.batch_rows = histogram(
            "step_rows", "Rows that took part in a decoder step.", ROWS, "model"
        )
        self.step = histogram(
            "step_duration_seconds", "Seconds of a decoder step.", STEP_SECONDS, "model"
        )
        self.encode = histogram(
            "encode_duration_seconds",
            "Seconds of a turn that the encoder took.",
            STEP_SECONDS,
            "model",
        )
        self.source_tokens = counter(
            "source_tokens_total", "Source tokens that were encoded.", "model"
        )
        self.target_tokens = counter(
            "target_tokens_total", "Target tokens of the answers.", "model"
        )
        self.padding = counter(
            "padding_tokens_total", "Source positions computed for nothing.", "model"
        )
        self.sentences = counter(
            "sentences_total", "Sentences that ended, by how they did.", "model", "outcome"
        )
        self.nan_rows = counter(
            "nan_rows_total", "Sentences for which the model computed no number.", "model"
        )
        # Long texts are judged in threads.
        self.retried = Counter(
            "dragoman_retried_sentences_total",
            "Sentences that were translated again, by what was wrong.",
            ["model", "reason"],
            registry=registry,
        )
        self.warnings = counter(
            "warnings_total",
            "Faults of translations that could not be mended, by what they are.",
            "model",
            "code",
        )
        self.faults = counter("engine_faults_total", "Decoder steps that failed.", "model")
        self.cache_bytes = gauge(
            "cache_bytes", "Bytes of memory that is reserved for the rows.", "model"
        )
        self.rows = gauge("rows", "Rows of the model, in all lanes.", "model")
        self.loop_lag = histogram(
            "event_loop_lag_seconds", "Seconds by which the event loop wakes up late.", LAG_SECONDS
        ).labels()
        self.ready = gauge("ready", "1 while the server takes requests.")
        self.models = Info("dragoman_model", "The models loaded.", ["model"], registry=registry)
        registry.register(_EngineFigures(self._engines))
        for reason in REJECTIONS:
            self.rejected.labels(reason)

    def add_rpcs(self, rpcs: Iterable[str]) -> None:
        """Have the series of these calls from the start."""
        for rpc in rpcs:
            self.in_flight.labels(rpc)
            self.duration.labels(rpc)
            for code in StatusCode:
                self.requests.labels(rpc, code.name)

    def add_model(self, name: str, engine: Front) -> None:
        manifest = engine.manifest
        for metric in (
            *(self.queue_wait, self.first_token, self.per_token, self.batch_rows, self.step),
            *(self.encode, self.source_tokens, self.target_tokens, self.padding),
            *(self.nan_rows, self.faults),
        ):
            metric.labels(name)
        for outcome in OUTCOMES:
            self.sentences.labels(name, outcome)
        for reason in RETRIES:
            self.retried.labels(name, reason)
        for code in WARNINGS:
            self.warnings.labels(name, code)
        self.cache_bytes.labels(name).set(engine.buffer_bytes)
        self.rows.labels(name).set(engine.resolved.lanes * engine.resolved.rows_per_lane)
        self.models.labels(name).info(
            {
                "version": manifest.version,
                "source_language": manifest.source_language,
                "target_language": manifest.target_language,
                "precision": manifest.precision,
                "device": engine.settings.device,
            }
        )
        self._engines[name] = engine

    def observer(self, model: str) -> Callable[[Report], None]:
        """Return what takes the reports of a model's engine."""
        # Series are looked up once: it takes longer than to count.
        batch_rows, step = self.batch_rows.labels(model), self.step.labels(model)
        encode, padding = self.encode.labels(model), self.padding.labels(model)
        source_tokens = self.source_tokens.labels(model)
        target_tokens = self.target_tokens.labels(model)
        faults = self.faults.labels(model)
        answered = self._answer_observer(model)

        def observe(report: Report) -> None:
            if report.earlier_steps:
                rows, seconds = zip(*report.earlier_steps, strict=True)
                batch_rows.observe_all(rows)
                step.observe_all(seconds)
            if report.rows:
                batch_rows.observe(report.rows)
                step.observe(report.step_seconds)
            if report.encoded:
                encode.observe(report.encode_seconds)
                source_tokens.inc(report.source_tokens)
                padding.inc(report.padding)
            if report.faults:
                faults.inc(report.faults)
            if report.answers:
                target_tokens.inc(report.target_tokens)
                for answer in report.answers:
                    answered(answer)

        return observe

    def _answer_observer(self, model: str) -> Callable[[Answer], None]:
        sentences = {outcome: self.sentences.labels(model, outcome) for outcome in OUTCOMES}
        nan_rows, queue_wait = self.nan_rows.labels(model), self.queue_wait.labels(model)
        first_token, per_token = self.first_token.labels(model), self.per_token.labels(model)

        def observe(answer: Answer) -> None:
            outcome = answer.failure or answer.hypotheses[0].finish
            sentences[outcome.value].inc()
            if answer.failure is Failure.POISONED:
                nan_rows.inc()
            timing = answer.timing
            if timing.admitted:
                queue_wait.observe(timing.admitted - timing.submitted)
            if timing.first_token:
                first_token.observe(timing.first_token - timing.submitted)
                if answer.steps > 1 and not answer.failure:
                    spent = timing.finished - timing.first_token
                    per_token.observe(spent / (answer.steps - 1))

        return observe

    def retries_of(self, model: str) -> Callable[[str], None]:
        """Return what counts the sentences of a model that are translated again."""

        def count(reason: str) -> None:
            self.retried.labels(model, reason).inc()

        return count

    def warnings_of(self, model: str) -> Callable[[str], None]:
        """Return what counts the warnings about translations of a model."""

        def count(code: str) -> None:
            self.warnings.labels(model, code).inc()

        return count

    def rejected_for(self, reason: str) -> None:
        if reason in REJECTIONS:
            self.rejected.labels(reason).inc()


class _EngineFigures(Collector):
    """Gauges and counters whose value an engine is asked for at the moment of a scrape."""

    def __init__(self, engines: dict[str, Front]) -> None:
        self._engines = engines

    def collect(self) -> Iterable[Metric]:
        for kind, (name, text, value) in (
            *((GaugeMetricFamily, gauge) for gauge in _GAUGES),
            *((CounterMetricFamily, counter) for counter in _COUNTERS),
        ):
            family = kind(f"dragoman_{name}", text, labels=["model"])
            for model, engine in list(self._engines.items()):  # models may be added meanwhile
                family.add_metric([model], value(engine))
            yield family


_Figures = Sequence[tuple[str, str, Callable[[Front], float]]]
_COUNTERS: _Figures = (
    ("lost_workers", "Processes of lanes that died or hung.", lambda e: e.lost_workers),
    (
        "rerun_sentences",
        "Sentences that ran again because their worker was lost.",
        lambda e: e.rerun_sentences,
    ),
    (
        "quarantined_sentences",
        "Sentences that had to run alone, because several workers were lost with them.",
        lambda e: e.quarantined_sentences,
    ),
)
_GAUGES: _Figures = (
    ("waiting_requests", "Requests of which nothing has begun.", lambda e: e.waiting_requests),
    ("waiting_sentences", "Sentences in the queue.", lambda e: e.waiting),
    ("waiting_tokens", "Source tokens of the sentences in the queue.", lambda e: e.waiting_tokens),
    ("running_sentences", "Sentences that hold rows.", lambda e: e.running),
    (
        "resident_bytes",
        "Bytes in memory of the processes that lanes run in; what they share is counted once.",
        lambda e: e.resident_bytes,
    ),
    (
        "row_use_ratio",
        "Share of the rows that are held, 0 to 1.",
        lambda e: e.used_rows / (e.resolved.lanes * e.resolved.rows_per_lane),
    ),
    (
        "engine_heartbeat_age_seconds",
        "Seconds since the last sign of life of the slowest lane that has work.",
        lambda e: max((s.since_heartbeat for s in e.status() if s.busy), default=0.0),
    ),
)
