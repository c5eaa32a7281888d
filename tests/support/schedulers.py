"""Schedulers without an engine, and what is queued in them."""

from hypothesis import strategies as st

from dragoman_server.engine.queue_entry import Need
from dragoman_server.engine.scheduler import Scheduler
from dragoman_server.engine.scheduler_settings import QueueSettings, SchedulerSettings

FLOWS = st.integers(-3, -1)  # a request without a flow is its own, with its number


def scheduler_of(*, lanes: int = 1, rows: int = 64, reserve: int = 0, **queue: int) -> Scheduler:
    bounds = QueueSettings(**queue)
    return Scheduler(SchedulerSettings(lanes=lanes, rows=rows, reserve=reserve, queue=bounds))


def ones(count: int) -> list[Need]:
    return [Need(rows=1, source_tokens=1)] * count
