"""One end of the socket between the front and a worker."""

import select
import socket
from collections.abc import Iterator

from dragoman_server.engine.workers.messages import Message, Unframer, framed

_CHUNK = 1 << 18
"""Most bytes that are read at a time."""


class ChannelClosedError(Exception):
    """The other end is gone."""


class Channel:
    """A worker's end: it waits until what it sends is taken, and for what it is sent if it must."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._unframer = Unframer()
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)

    def fileno(self) -> int:
        """The descriptor, for whoever waits for several things."""
        return self._socket.fileno()

    @property
    def has_news(self) -> bool:
        """Whether something has come, if only that the other end is gone."""
        return bool(self._poll.poll(0))

    def send(self, message: Message) -> None:
        """Send a message, and wait until it has gone."""
        try:
            self._socket.sendall(framed(message))
        except OSError:
            raise ChannelClosedError from None

    def receive(self, wait: bool) -> Iterator[Message]:
        """Yield what has come. With ``wait``, something has, though maybe no whole message."""
        try:
            data = self._socket.recv(_CHUNK, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            raise ChannelClosedError from None
        if not data:
            raise ChannelClosedError
        yield from self._unframer.feed(data)

    def close(self) -> None:
        self._socket.close()


class PostingChannel(Channel):
    """The front's end: it never waits. What does not go at once goes when there is room."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__(end)
        end.setblocking(False)
        self._unsent = b""

    @property
    def has_unsent(self) -> bool:
        """Whether something has to be flushed once there is room."""
        return bool(self._unsent)

    def send(self, message: Message) -> None:
        """Send a message now, or what is left of it later."""
        self._unsent += framed(message)
        self.flush()

    def flush(self) -> None:
        """Send what there is room for."""
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent)
                self._unsent = self._unsent[sent:]
        except BlockingIOError:
            pass
        except OSError:
            raise ChannelClosedError from None
