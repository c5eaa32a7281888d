"""``Client.translate_many``: three threads around one window.

texts → feeder → [window] → gRPC's sender … server … the caller's own thread → results in order
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import CallError
from dragoman_client._messages import (
    RequestBuilder,
    check_many,
    ended_early,
    is_of_one_item,
    not_text,
    result,
)
from dragoman_client._results import Translation
from dragoman_client._retries import Interruptions, Retries, is_passing
from dragoman_client._statuses import from_rpc_error
from dragoman_client._window import Window

Open = Callable[[Iterator[pb.TranslateBulkRequest]], Any]
"""Begins a stream with these requests; returns the call, which gives the responses."""


class Many:
    def __init__(
        self, texts: Iterable[str], builder: RequestBuilder, window: int, retries: Retries
    ) -> None:
        check_many(texts, window)
        self._texts = texts
        self._builder = builder
        self._interruptions = Interruptions(retries)
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
        try:
            while True:
                error: CallError | None = None
                alone, answered = self._sends_alone(), False
                call = open_stream(self._requests(self._next_stream(), alone))
                try:
                    for response in call:
                        number, found = int(response.id), result(response)
                        if isinstance(found, CallError) and is_passing(found):
                            error = found  # sent again with the next stream
                            break
                        answered = True
                        self._answer(number, found)
                        yield from self._ready()
                except grpc.RpcError as raised:
                    error = from_rpc_error(raised)
                finally:
                    call.cancel()
                if error is None and self._is_done():
                    break
                if error is not None and is_of_one_item(error) and not (alone and answered):
                    with self._changed:
                        self._window.find_out_whose(error, alone)
                    yield from self._ready()
                elif error is not None or not (alone and answered):
                    self._wait_or_raise(error or ended_early())
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
                self._builder.check_item(text)
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

    def _requests(self, stream: int, alone: bool) -> Iterator[pb.TranslateBulkRequest]:
        first = True
        while first or not alone:
            with self._changed:
                self._changed.wait_for(
                    lambda: stream != self._stream or self._window.has_unsent or self._is_read
                )
                if stream != self._stream:
                    return
                item = self._window.next_unsent()
            if item is None:
                return
            yield self._builder.item(*item, first=first)
            first = False

    def _next_stream(self) -> int:
        """Requests of the stream before end; what it left without an answer is to be sent."""
        with self._changed:
            self._stream += 1
            self._window.send_all_again()
            self._changed.notify_all()
            return self._stream

    def _is_done(self) -> bool:
        with self._changed:
            return self._is_read and self._window.is_empty

    def _sends_alone(self) -> bool:
        with self._changed:
            return self._window.has_suspects

    def _wait_or_raise(self, error: CallError) -> None:
        delay = self._interruptions.delay(error, time.monotonic())
        if delay is None:
            raise error
        time.sleep(delay)

    def _answer(self, number: int, found: Translation | CallError) -> None:
        self._interruptions.answered()
        with self._changed:
            self._window.answer(number, not_text(self._window.text(number)) or found)

    def _ready(self) -> Iterator[Translation | CallError]:
        while True:
            with self._changed:
                found = self._window.next_result()
                self._changed.notify_all()
            if found is None:
                return
            yield found
