"""The one place where a status of gRPC becomes an exception."""

from collections.abc import Iterable
from typing import Any

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from dragoman_client._errors import BY_CODE, CallError

_DETAILS = "grpc-status-details-bin"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


def from_rpc_error(error: Any) -> CallError:
    """From what a call of gRPC raised, sync or async."""
    status = Status(code=error.code().value[0], message=error.details() or "")
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            status = Status.FromString(value)
    return from_status(status)


def from_status(status: Status) -> CallError:
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
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
    """The detail of this kind, if there is one."""
    for packed in details:
        if packed.Is(kind.DESCRIPTOR):
            found = kind()
            packed.Unpack(found)
            return found
    return None
