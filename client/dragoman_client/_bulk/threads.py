"""``Client.translate_many``: threads around one window.

texts → feeder → [window] → a stream to each server, with a thread of its own → [window] → the
caller's thread, which hands on the results in order
"""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._bulk.window import Result
from dragoman_client._bulk.work import Work
from dragoman_client._errors import CallError
from dragoman_client._statuses import from_rpc_error

Open = Callable[[int, Iterator[pb.TranslateBulkRequest]], Any]
"""Begins a stream to the address of this number, with these requests; returns the call, which gives
the responses."""
Explain = Callable[[CallError, int], CallError]
"""Returns an error with words that help; the number is that of its address."""


class Many:
    def __init__(
        self, texts: Iterable[str], work: Work, open_stream: Open, explain: Explain
    ) -> None:
        self._texts = texts
        self._work = work
        self._open_stream = open_stream
        self._explain = explain
        self._changed = threading.Condition()
        """Guards the work, and is notified of every change that somebody waits for."""
        self._is_closed = False
        """Whether the results are not wanted any more."""
        self._problem: BaseException | None = None
        """What was raised while texts were read, or in a thread of ours."""
        self._calls: dict[int, Any] = {}
        """Streams that are open, by the number of their address."""

    def results(self) -> Generator[Result, None, None]:
        """Yield the results in order; raise what ends the call early."""
        self._start("dragoman-feed", self._feed)
        for address in range(self._work.addresses):
            self._start("dragoman-stream", self._serve, address)
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._work.window.has_result or self._is_over)
                    was_full = not self._work.window.has_room
                    found = self._work.window.next_result()
                    if was_full:
                        self._changed.notify_all()
                if found is None:
                    break
                yield found
        finally:
            self._close()
        if self._work.failure is not None:
            raise self._explain(self._work.failure, self._work.failed_at)
        if self._problem is not None:
            raise self._problem

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._work.is_over

    def _start(self, name: str, work: Callable[..., None], *arguments: int) -> None:
        threading.Thread(target=work, args=arguments, name=name, daemon=True).start()

    def _fail(self, error: BaseException) -> None:
        """Let the caller's thread raise what a thread of ours raised."""
        with self._changed:
            self._problem = self._problem or error

    def _close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            calls = list(self._calls.values())
        for call in calls:
            call.cancel()

    def _feed(self) -> None:
        try:
            for text in self._texts:
                self._work.builder.check_item(text)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_over or self._work.window.has_room)
                    if self._is_over:
                        return
                    is_awaited = not self._work.window.has_unsent
                    self._work.window.add(text)
                    if is_awaited:
                        self._changed.notify_all()
        except BaseException as error:  # it is the caller's; what was read is still translated
            self._fail(error)
        finally:
            with self._changed:
                self._work.is_read = True
                self._changed.notify_all()

    def _serve(self, address: int) -> None:
        """Keep a stream open to one server while there is something to send."""
        try:
            while self._exchange(address):
                pass
        except BaseException as error:
            self._fail(error)
            self._close()

    def _exchange(self, address: int) -> bool:
        """Send through one stream until it ends; return whether there may be another one."""
        work = self._work
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or work.has_work(address))
            if self._is_over:
                return False
            number = work.open(address)
        error = self._use(self._open_stream(address, self._requests(address, number)), address)
        with self._changed:
            if self._is_closed:
                return False
            delay = work.close(address, error, time.monotonic())
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_over, delay)
        return True

    def _use(self, call: Any, address: int) -> CallError | None:
        """Take the answers of a stream until it ends; return the error that ended it."""
        with self._changed:
            self._calls[address] = call
            is_late = self._is_closed  # before it was known that there is something to cancel
        if is_late:
            call.cancel()
        try:
            for response in call:
                with self._changed:
                    error = self._work.take(address, response, time.monotonic())
                    if self._work.is_shared or self._work.window.has_result:
                        self._changed.notify_all()
                if error is not None:
                    return error
        except grpc.RpcError as raised:
            return from_rpc_error(raised)
        finally:
            call.cancel()
        return None

    def _requests(self, address: int, number: int) -> Iterator[pb.TranslateBulkRequest]:
        """Yield the requests of a stream, each when it is its turn."""
        first = True
        while True:
            with self._changed:
                self._work.ask(address)
                self._changed.wait_for(
                    lambda: self._is_closed or self._work.may_go_on(address, number)
                )
                if self._is_closed:
                    return
                now = time.monotonic()
                request = self._work.next_request(address, number, now, first=first)
                if self._work.is_shared:
                    self._changed.notify_all()
            if request is None:
                return
            yield request
            first = False
