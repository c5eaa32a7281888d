"""What a call can end with, other than well; each class carries its gRPC code and its reason.

    CallError
    ├── InvalidArgumentError      INVALID_ARGUMENT      BadRequest names the field
    ├── NotFoundError             NOT_FOUND
    ├── OverloadedError           RESOURCE_EXHAUSTED    RetryInfo
    ├── UnavailableError          UNAVAILABLE           RetryInfo
    ├── ModelRefusedError         FAILED_PRECONDITION
    ├── ExpiredError              DEADLINE_EXCEEDED
    ├── CancelledByClientError    CANCELLED
    ├── UnauthenticatedError      UNAUTHENTICATED
    ├── NotAllowedError           PERMISSION_DENIED
    └── InternalError             INTERNAL              request id only

Messages are for clients: they name fields, limits and numbers, and never repeat what a client sent,
nor say anything of the machine.
"""

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

DOMAIN = "dragoman"
_SOON_SECONDS = 1.0
"""Seconds until another server may be there."""


class CallError(Exception):
    code: StatusCode
    reason: str

    def __init__(self, message: str, *, reason: str | None = None, **metadata: str) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.reason
        self.metadata = metadata

    def details(self) -> list[BadRequest | RetryInfo]:
        """Return what goes along with ErrorInfo."""
        return []

    def status(self, request_id: str) -> Status:
        """Return the error as a status with its details."""
        info = ErrorInfo(
            reason=self.reason,
            domain=DOMAIN,
            metadata={**self.metadata, "request_id": request_id},
        )
        status = Status(code=self.code.value[0], message=self.message)
        for detail in (info, *self.details()):
            packed = Any()
            packed.Pack(detail)
            status.details.append(packed)
        return status


class InvalidArgumentError(CallError):
    code = StatusCode.INVALID_ARGUMENT
    reason = "INVALID_FIELD"

    def __init__(self, field: str, problem: str, *, reason: str | None = None) -> None:
        super().__init__(f"{field} {problem}" if field else problem, reason=reason)
        self.field = field
        self.problem = problem

    def details(self) -> list[BadRequest | RetryInfo]:
        violation = BadRequest.FieldViolation(field=self.field, description=self.problem)
        return [BadRequest(field_violations=[violation])]


class NotFoundError(CallError):
    code = StatusCode.NOT_FOUND
    reason = "UNKNOWN_MODEL"


class _RetryableError(CallError):
    def __init__(self, message: str, retry_seconds: float, *, reason: str | None = None) -> None:
        super().__init__(message, reason=reason)
        self.retry_seconds = retry_seconds

    def details(self) -> list[BadRequest | RetryInfo]:
        delay = Duration()
        delay.FromMilliseconds(round(self.retry_seconds * 1000))
        return [RetryInfo(retry_delay=delay)]


class OverloadedError(_RetryableError):
    code = StatusCode.RESOURCE_EXHAUSTED
    reason = "QUEUE_FULL"


class UnavailableError(_RetryableError):
    code = StatusCode.UNAVAILABLE
    reason = "STARTING"


def draining() -> UnavailableError:
    """Return the error of a server that is about to end."""
    return UnavailableError("the server is stopping", _SOON_SECONDS, reason="DRAINING")


def engine_stopped() -> UnavailableError:
    """Return the error of a server that has lost an engine."""
    return UnavailableError(
        "an engine of this server has stopped", _SOON_SECONDS, reason="ENGINE_STOPPED"
    )


class ModelRefusedError(CallError):
    code = StatusCode.FAILED_PRECONDITION
    reason = "BUNDLE_REFUSED"


class ExpiredError(CallError):
    code = StatusCode.DEADLINE_EXCEEDED
    reason = "DEADLINE_PASSED"


class CancelledByClientError(CallError):
    code = StatusCode.CANCELLED
    reason = "CANCELLED"


class UnauthenticatedError(CallError):
    code = StatusCode.UNAUTHENTICATED
    reason = "NO_KEY"


class NotAllowedError(CallError):
    code = StatusCode.PERMISSION_DENIED
    reason = "NOT_ALLOWED"


class InternalError(CallError):
    """Something that is our fault; the log has more under the same request id."""

    code = StatusCode.INTERNAL
    reason = "INTERNAL"

    def __init__(self, *, reason: str | None = None) -> None:
        super().__init__("the server failed; its log says more under this request id")
        self.reason = reason or self.reason
