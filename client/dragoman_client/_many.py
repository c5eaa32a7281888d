"""``Client.translate_many``: three threads around one window.

texts → feeder → [window] → gRPC's sender … server … the caller's own thread → results in order
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import CallError, ConfigurationError
from dragoman_client._messages import Job, ended_early, result
from dragoman_client._results import Translation
from dragoman_client._retries import Retries, is_passing
from dragoman_client._statuses import from_rpc_error
from dragoman_client._window import Window

Open = Callable[[Iterator[pb.TranslateBulkRequest]], Any]
"""Begins a stream with these requests; returns the call, which gives the responses."""


class Many:
    def __init__(self, texts: Iterable[str], job: Job, window: int, retries: Retries) -> None:
        if window < 1:
            raise ConfigurationError(f"window is {window}: it must be at least 1")
        self._texts = texts
        self._job = job
        self._retries = retries
        self._window = Window(window)
        self._changed = threading.Condition()
        self._is_read = False
        """There are no more texts."""
        self._problem: BaseException | None = None
        """What reading them raised."""
        self._stream = 0
        """Number of the stream that is in use; requests of an older one end."""

    def results(self, open_stream: Open) -> Iterator[Translation | CallError]:
        threading.Thread(target=self._feed, name="dragoman-feed", daemon=True).start()
        attempt = 1
        try:
            while True:
                error: CallError | None = None
                call = open_stream(self._requests(self._next_stream()))
                try:
                    for response in call:
                        found = result(response)
                        if isinstance(found, CallError) and is_passing(found):
                            error = found  # sent again with the next stream
                            break
                        attempt = 1
                        self._answer(int(response.id), found)
                        yield from self._ready()
                except grpc.RpcError as raised:
                    error = from_rpc_error(raised)
                finally:
                    call.cancel()
                with self._changed:
                    if error is None and self._is_read and self._window.is_empty:
                        break
                delay = self._retries.delay(error or ended_early(), attempt, float("inf"))
                if delay is None:
                    raise error or ended_early()
                attempt += 1
                time.sleep(delay)
        finally:
            self._next_stream()
            with self._changed:
                self._is_read = True
                self._changed.notify_all()
        if self._problem is not None:
            raise self._problem

    def _feed(self) -> None:
        try:
            for text in self._texts:
                if not isinstance(text, str):
                    raise ConfigurationError(f"a text is {type(text).__name__}, not str")
                with self._changed:
                    self._changed.wait_for(lambda: self._is_read or self._window.has_room)
                    if self._is_read:  # the results are not wanted any more
                        return
                    self._window.add(text)
                    self._changed.notify_all()
        except BaseException as error:  # it is the caller's: raised where the results are read
            self._problem = error
        finally:
            with self._changed:
                self._is_read = True
                self._changed.notify_all()

    def _requests(self, stream: int) -> Iterator[pb.TranslateBulkRequest]:
        first = True
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: stream != self._stream or self._window.has_unsent or self._is_read
                )
                if stream != self._stream:
                    return
                item = self._window.next_unsent()
            if item is None:
                return
            yield self._job.item(*item, first=first)
            first = False

    def _next_stream(self) -> int:
        """Requests of the stream before end; what it left without an answer is to be sent."""
        with self._changed:
            self._stream += 1
            self._window.send_all_again()
            self._changed.notify_all()
            return self._stream

    def _answer(self, number: int, found: Translation | CallError) -> None:
        with self._changed:
            self._window.answer(number, found)

    def _ready(self) -> Iterator[Translation | CallError]:
        while True:
            with self._changed:
                found = self._window.next_result()
                self._changed.notify_all()
            if found is None:
                return
            yield found
