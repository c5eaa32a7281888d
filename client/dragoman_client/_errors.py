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

The client has tried again already where that could help.
"""

from grpc import StatusCode


class DragomanError(Exception):
    exit_code = 2
    """Exit code of the command, where this ends it."""


class ConfigurationError(DragomanError, ValueError):
    pass


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
        self.message = message
        self.code = code
        """Status code of gRPC."""
        self.reason = reason
        """Why the call failed, in a word for programs; docs/wire.md lists all."""
        self.field = field
        """Field of the request that is wrong; empty where none is."""
        self.retry_after = retry_after
        """Seconds after which to come back, where the server says so."""
        self.request_id = request_id
        """Id of the call, under which the server's log has more."""


class InvalidRequestError(CallError):
    pass


class NotFoundError(CallError):
    pass


class AuthenticationError(CallError):
    pass


class PermissionDeniedError(CallError):
    pass


class OverloadedError(CallError):
    exit_code = 3


class UnavailableError(CallError):
    exit_code = 3


class ModelRefusedError(CallError):
    pass


class TimedOutError(CallError):
    exit_code = 3


class CancelledError(CallError):
    exit_code = 4


class ServerError(CallError):
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
"""Every status but OK."""
