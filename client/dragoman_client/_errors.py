"""What can go wrong, as exceptions.

    DragomanError                    all of them
    ├── ConfigurationError           an address, certificate or option that can't be right
    └── CallError                    a call that ended otherwise than well
        ├── InvalidRequestError      a field is wrong; .field says which
        ├── NotFoundError            no such model, or no model of these languages
        ├── AuthenticationError      no key, or not a known one
        ├── PermissionDeniedError    a key that may not do this
        ├── OverloadedError          the server is full; .retry_after says when to come back
        ├── UnavailableError         no server there, or it starts or stops
        ├── ModelRefusedError        the model could not be loaded
        ├── TimedOutError            it took longer than it may
        ├── CancelledError           it was cancelled
        └── ServerError              the server's fault; its log has more under .request_id

The client has tried again already where that could help. An argument of the wrong type is a
``TypeError``, as everywhere in Python.
"""

from enum import Enum


class StatusCode(Enum):
    """How a call ended: the codes of gRPC, with their numbers."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class DragomanError(Exception):
    """Any error that the SDK raises on purpose, but for a ``TypeError``."""

    exit_code = 2
    """Exit code of the command, where this ends it."""


class ConfigurationError(DragomanError, ValueError):
    """An address, a certificate or an option that can't be right. Nothing was sent."""


class CallError(DragomanError):
    """A call that failed."""

    def __init__(
        self,
        message: str,
        *,
        code: StatusCode = StatusCode.UNKNOWN,
        reason: str = "",
        field: str = "",
        retry_after: float | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message: str = message
        """What went wrong, in a line for people, with what to do about it."""
        self.code: StatusCode = code
        """Status code of gRPC."""
        self.reason: str = reason
        """Why the call failed, in a word for programs; docs/wire.md and docs/sdk.md list all."""
        self.field: str = field
        """Field of the request that is wrong; empty where none is."""
        self.retry_after: float | None = retry_after
        """Seconds after which to come back, where the server says so."""
        self.request_id: str = request_id
        """Id of the call, under which the server's log has more."""

    def __str__(self) -> str:
        return self.message


class InvalidRequestError(CallError):
    """A field of the request is wrong; ``field`` says which."""


class NotFoundError(CallError):
    """The server has no model of this name, or none of these languages."""


class AuthenticationError(CallError):
    """The server wants a key, and got none or one that it does not know."""


class PermissionDeniedError(CallError):
    """The key may not use this model."""


class OverloadedError(CallError):
    """The server is full; ``retry_after`` says when to come back."""

    exit_code = 3


class UnavailableError(CallError):
    """No server answers there, or it is starting or stopping."""

    exit_code = 3


class ModelRefusedError(CallError):
    """The server could not load the model."""


class TimedOutError(CallError):
    """The call took longer than it may."""

    exit_code = 3


class CancelledError(CallError):
    """The call was cancelled."""

    exit_code = 4


class ServerError(CallError):
    """The server made a mistake; its log has more under ``request_id``."""

    exit_code = 4


BY_CODE: dict[StatusCode, type[CallError]] = {
    StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    StatusCode.OUT_OF_RANGE: InvalidRequestError,
    StatusCode.UNIMPLEMENTED: InvalidRequestError,
    StatusCode.NOT_FOUND: NotFoundError,
    StatusCode.UNAUTHENTICATED: AuthenticationError,
    StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    StatusCode.UNAVAILABLE: UnavailableError,
    StatusCode.FAILED_PRECONDITION: ModelRefusedError,
    StatusCode.DEADLINE_EXCEEDED: TimedOutError,
    StatusCode.CANCELLED: CancelledError,
    StatusCode.INTERNAL: ServerError,
    StatusCode.UNKNOWN: ServerError,
    StatusCode.DATA_LOSS: ServerError,
    StatusCode.ABORTED: ServerError,
    StatusCode.ALREADY_EXISTS: ServerError,
}
"""The exception of every status."""
