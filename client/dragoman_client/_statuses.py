"""The one place where a status of gRPC becomes an exception."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from dragoman_client._errors import BY_CODE, CallError, InvalidRequestError, StatusCode

_DETAILS = "grpc-status-details-bin"
_REQUEST_ID = "x-request-id"
_CODES = {code.value: code for code in StatusCode}
_TOO_LARGE = "larger than max"
"""What gRPC itself says of a message that it refuses, with the status of a server that is full."""

_CUT_OFF = ("Internal error from Core", "Stream removed", "RST_STREAM")
"""What gRPC says, with a status that means a fault of the server, where the connection went."""


def from_rpc_error(error: Any) -> CallError:
    """Return the exception for what a call of gRPC raised, sync or async."""
    code, message = _CODES[error.code().value[0]], error.details() or ""
    if code is StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in message:
        return InvalidRequestError(
            "the request has more bytes than the server takes", code=code, reason="TOO_LARGE"
        )
    if code in (StatusCode.INTERNAL, StatusCode.UNKNOWN):
        if any(each in message for each in _CUT_OFF):
            code = StatusCode.UNAVAILABLE
        elif "Deadline Exceeded" in message:  # so gRPC says it where it noticed a bit late
            code = StatusCode.DEADLINE_EXCEEDED
    status = Status(code=code.value, message=message)
    trailing = dict(error.trailing_metadata() or ())
    if _DETAILS in trailing:
        # Something between us and the server may have put anything there; the status itself stands.
        with suppress(DecodeError):
            status.details.extend(Status.FromString(trailing[_DETAILS]).details)
    found = from_status(status)
    found.request_id = found.request_id or str(trailing.get(_REQUEST_ID, ""))
    return found


def from_status(status: Status) -> CallError:
    """Return the exception for a status with its details."""
    code = _CODES.get(status.code, StatusCode.UNKNOWN)
    info = _find(status.details, ErrorInfo)
    request = _find(status.details, BadRequest)
    retry = _find(status.details, RetryInfo)
    return BY_CODE[code](
        status.message or code.name.lower().replace("_", " "),
        code=code,
        reason=info.reason if info else "",
        field=request.field_violations[0].field if request and request.field_violations else "",
        retry_after=retry.retry_delay.ToTimedelta().total_seconds() if retry else None,
        request_id=info.metadata.get("request_id", "") if info else "",
    )


def _find(details: Iterable[Any], kind: Any) -> Any:
    """Return the detail of this kind, if there is one."""
    for packed in details:
        if packed.Is(kind.DESCRIPTOR):
            found = kind()
            packed.Unpack(found)
            return found
    return None
