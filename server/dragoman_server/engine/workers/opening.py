"""What a worker is told first, and what it answers when it is ready."""

from dataclasses import astuple, dataclass
from pathlib import Path

from dragoman_server.engine.workers.messages import OPEN, Message

_PATHS = ("bundle", "prepacked", "prepares_in")


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Which lane a worker is to be."""

    lane: int
    """Number of the lane."""
    bundle: Path
    files: dict[str, str]
    """SHA-256 of each file of the bundle, as the front read them: a worker that is started later
    must not serve another version."""
    rows: int
    device: str
    threads: int
    """Threads of the lane."""
    spin: bool
    """Whether threads wait for each other by spinning."""
    touch_memory: bool
    """Whether the memory of all rows is taken at the start."""
    max_encode_tokens: int
    """Most source tokens that are encoded in one turn."""
    cpus: frozenset[int]
    """CPUs that the worker keeps to; empty: any."""
    log_level: int
    """Level of the log records that the worker sends to the front."""
    prepacked: Path | None = None
    """Directory with the weights as this CPU wants them; None: the bundle's are taken."""
    prepares_in: Path | None = None
    """Cache directory to prepare such weights in first, and to tell the front where they are."""

    @property
    def packed(self) -> Message:
        """The message that opens a worker."""
        values = (str(v) if isinstance(v, Path) else v for v in astuple(self))
        return (OPEN, *values)

    @classmethod
    def unpacked(cls, message: Message) -> "Opening":
        """Return what a message says."""
        values = dict(zip(cls.__dataclass_fields__, message[1:], strict=True))
        for name in _PATHS:
            values[name] = values[name] and Path(values[name])
        return cls(**values)


@dataclass(frozen=True)
class Opened:
    """What a worker found when it loaded its bundle."""

    golden_error: float
    """Largest difference between a log-probability here and in the bundle's golden sentences."""
    alignments_depend: bool
    """Whether the last bits of alignments depend on what else is in the batch, on this CPU."""
    buffer_bytes: int
    """Bytes of memory for the rows."""

    @property
    def packed(self) -> Message:
        """The values of a message."""
        return astuple(self)
