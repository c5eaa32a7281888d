"""All that the streams of one bulk call have in common, and what becomes of one that ends.

Used under a lock, or in one event loop: neither threads nor tasks nor a clock are in here.
"""

from dataclasses import dataclass, field

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._bulk.shares import Shares
from dragoman_client._bulk.window import Result, Window
from dragoman_client._errors import CallError, ServerError
from dragoman_client._messages import (
    RequestBuilder,
    ended_early,
    is_of_one_item,
    not_text,
    result,
)
from dragoman_client._retries import Interruptions, Retries, is_passing


@dataclass
class _Stream:
    """The stream to one address."""

    interruptions: Interruptions
    is_alone: bool = False
    """Whether it has one item only, to find out whether that is what broke the one before."""
    has_answered: bool = False
    """Whether an item of it was answered."""
    is_given_up: bool = False
    """Whether it failed so often that it is waited for only because others go on."""
    number: int = 0
    """How many streams there were to this address; requests of an earlier one end."""


@dataclass
class Work:
    """The texts of a call on their way through the streams, one to each address."""

    builder: RequestBuilder
    window_size: int
    addresses: int
    retries: Retries
    is_read: bool = False
    """Whether all texts were read."""
    failure: CallError | None = None
    """Why the call can't go on; None while it can."""
    failed_at: int = 0
    """Number of the address that the failure is about."""
    _streams: list[_Stream] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.window = Window(self.window_size, self.addresses)
        self._shares = Shares(self.addresses)
        self._streams = [_Stream(Interruptions(self.retries)) for _ in range(self.addresses)]

    @property
    def is_over(self) -> bool:
        """Whether no stream is needed any more."""
        return self.failure is not None or (self.is_read and self.window.is_empty)

    @property
    def is_shared(self) -> bool:
        """Whether what one stream does changes whose turn it is."""
        return self.addresses > 1

    def has_work(self, address: int) -> bool:
        """Whether a stream to this address would have something to send."""
        return self.window.has_unsent or self.window.has_suspects(address)

    def open(self, address: int) -> int:
        """Begin a stream; return its number, for ``next_request``."""
        stream = self._streams[address]
        stream.is_alone, stream.has_answered = self.window.has_suspects(address), False
        if not stream.is_alone:
            self._shares.open(address)
        stream.number += 1
        return stream.number

    def ask(self, address: int) -> None:
        """Note that a stream waits for ``may_go_on``."""
        self._shares.wait(address)

    def may_go_on(self, address: int, number: int) -> bool:
        """Whether ``next_request`` has something to say: a request, or that there is none."""
        if number != self._streams[address].number or self._streams[address].is_alone:
            return True
        if self.window.has_unsent:
            return self._shares.is_turn_of(address)
        return self.is_read or self.failure is not None

    def next_request(
        self, address: int, number: int, now: float, *, first: bool
    ) -> pb.TranslateBulkRequest | None:
        """Return what a stream sends next; None where it has sent everything."""
        stream = self._streams[address]
        if number != stream.number or (stream.is_alone and not first):
            return None
        item = self.window.next_unsent(address)
        if item is None:
            return None
        if not stream.is_alone:
            self._shares.send(address, now)
        return self.builder.item(*item, first=first)

    def take(
        self, address: int, response: pb.TranslateBulkResponse, now: float
    ) -> CallError | None:
        """Take in a response. Return the error that ends its stream, if it is one that passes."""
        item, found = int(response.id), result(response)
        if isinstance(found, CallError) and is_passing(found):
            return found  # the item is sent again
        stream = self._streams[address]
        stream.has_answered, stream.is_given_up = True, False
        stream.interruptions.answered()
        if not stream.is_alone:
            self._shares.answer(address, now)
        answer: Result = not_text(self.window.text(item)) or found
        self.window.answer(item, answer, address)
        return None

    def close(self, address: int, error: CallError | None, now: float) -> float:
        """End a stream, with the error that ended it. Return the seconds until the next one.

        What has no answer is for the other streams, or for the next one.
        """
        stream = self._streams[address]
        stream.number += 1
        self._shares.close(address)
        if error is None and self.window.has_sent(address):
            error = ended_early()
        if error is None:
            return 0.0
        if is_of_one_item(error) and self.window.has_sent(address):
            if stream.is_alone:
                error.field = error.field or "text"
                self.window.blame(error, address)
            else:
                self.window.suspect(address)
            return 0.0
        if stream.is_alone and self.addresses == 1:
            self.window.suspect(address)  # nobody else could find out
        else:
            self.window.take_back(address)
        delay = stream.interruptions.delay(error, now)
        if delay is None:
            stream.is_given_up = True
            can_others = is_passing(error) or isinstance(error, ServerError)
            if not can_others or all(each.is_given_up for each in self._streams):
                self.failure, self.failed_at = error, address
            delay = self.retries.max_delay
        return delay
