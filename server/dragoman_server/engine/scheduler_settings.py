"""The settings of a scheduler: how much there is to give out, and the bounds of its queue."""

from dataclasses import dataclass, fields


def check_at_least_one(settings: object, *names: str) -> None:
    """Raise ``ValueError`` for the first of these fields that is below 1; None is not."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}: it must be at least 1")


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """Bounds of the queue of an engine, and of what leaves it at a time."""

    max_encode_tokens: int = 512
    """Most source tokens encoded between two steps of a lane. Bounds how long running sentences
    are held up; a sentence that has more is encoded alone."""
    max_waiting_sentences: int = 10_000
    """Most sentences in the queue."""
    max_waiting_requests: int = 10_000
    """Most requests in the queue, beside those that free rows will take at once."""
    max_waiting_tokens: int = 1_000_000
    """Most source tokens in the queue; a request that is alone there may have more."""

    def __post_init__(self) -> None:
        check_at_least_one(self, *(bound.name for bound in fields(QueueSettings)))


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings:
    lanes: int = 1
    """Lanes that take sentences from the queue."""
    rows: int = 64
    """Rows in each lane."""
    reserve: int = 8
    """Rows of each lane that only a flow without any may take."""
    queue: QueueSettings = QueueSettings()
    """Bounds of the queue."""

    def __post_init__(self) -> None:
        check_at_least_one(self, "lanes", "rows")
        if not 0 <= self.reserve < self.rows:
            raise ValueError(f"reserve is {self.reserve}: it must be from 0 to {self.rows - 1}")
