"""The Python SDK of Dragoman, and the ``dragoman`` command.

from dragoman_client import Client

with Client("localhost:50051") as client:
    print(client.translate("Good morning.", source="en", target="pt").text)
"""

from dragoman_client._async_client import AsyncClient
from dragoman_client._client import Client
from dragoman_client._connection import TLS
from dragoman_client._errors import (
    AuthenticationError,
    CallError,
    CancelledError,
    ConfigurationError,
    DragomanError,
    InvalidRequestError,
    ModelRefusedError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ServerError,
    TimedOutError,
    UnavailableError,
)
from dragoman_client._options import Options, Sampling
from dragoman_client._results import (
    Alignment,
    Alternative,
    FinishReason,
    Model,
    Score,
    Segment,
    Timing,
    Token,
    Translation,
)
from dragoman_client._retries import Retries

__all__ = [
    "TLS",
    "Alignment",
    "Alternative",
    "AsyncClient",
    "AuthenticationError",
    "CallError",
    "CancelledError",
    "Client",
    "ConfigurationError",
    "DragomanError",
    "FinishReason",
    "InvalidRequestError",
    "Model",
    "ModelRefusedError",
    "NotFoundError",
    "Options",
    "OverloadedError",
    "PermissionDeniedError",
    "Retries",
    "Sampling",
    "Score",
    "Segment",
    "ServerError",
    "TimedOutError",
    "Timing",
    "Token",
    "Translation",
    "UnavailableError",
]
