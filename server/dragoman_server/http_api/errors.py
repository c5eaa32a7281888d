"""Errors over HTTP: the status of each, and what is wrong with a request before it is a message."""

import math

from grpc import StatusCode

from dragoman_server.service.errors import CallError, ExpiredError, InvalidArgumentError

STATUSES = {
    StatusCode.INVALID_ARGUMENT: 400,
    StatusCode.FAILED_PRECONDITION: 400,
    StatusCode.UNAUTHENTICATED: 401,
    StatusCode.PERMISSION_DENIED: 403,
    StatusCode.NOT_FOUND: 404,
    StatusCode.RESOURCE_EXHAUSTED: 429,
    StatusCode.CANCELLED: 499,
    StatusCode.INTERNAL: 500,
    StatusCode.UNAVAILABLE: 503,
    StatusCode.DEADLINE_EXCEEDED: 504,
}
"""The status of HTTP for each code that an error of ours has."""


class BodyTooLargeError(InvalidArgumentError):
    status_code = 413

    def __init__(self, max_bytes: int) -> None:
        super().__init__("", f"the body is too long: the limit is {max_bytes}", reason="TOO_LARGE")


class MediaTypeError(InvalidArgumentError):
    status_code = 415

    def __init__(self, problem: str) -> None:
        super().__init__("", problem, reason="MEDIA_TYPE")


class SlowBodyError(ExpiredError):
    status_code = 408

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the body took longer than {seconds:g} seconds", reason="SLOW_BODY")


def status_of(error: CallError) -> int:
    """Return the HTTP status of an error."""
    own: int | None = getattr(error, "status_code", None)
    return own or STATUSES[error.code]


def headers_of(error: CallError) -> dict[str, str]:
    """Return the headers that go with an error."""
    if (seconds := retry_seconds(error)) is not None:
        return {"retry-after": str(max(1, math.ceil(seconds)))}
    if error.code is StatusCode.UNAUTHENTICATED:
        return {"www-authenticate": "Bearer"}
    if isinstance(error, SlowBodyError):
        return {"connection": "close"}  # or what is left of the body would be waited for
    return {}


def retry_seconds(error: CallError) -> float | None:
    """Return the seconds after which to come back, where an error says so."""
    seconds: float | None = getattr(error, "retry_seconds", None)
    return seconds
