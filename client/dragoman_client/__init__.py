"""The Python SDK of Dragoman.

from dragoman_client import Client

with Client("localhost:50051") as client:
    print(client.translate("Good morning.", source_language="en", target_language="pt").text)
"""

import importlib
import typing

if typing.TYPE_CHECKING:
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
        StatusCode,
        TimedOutError,
        UnavailableError,
    )
    from dragoman_client._glossaries import Glossary, read_glossary
    from dragoman_client._options import Options, Sampling
    from dragoman_client._results import (
        Alignment,
        Alternative,
        DetectedLanguage,
        FinishReason,
        Model,
        Score,
        Segment,
        Timing,
        Token,
        Translation,
        TranslationWarning,
        WarningCode,
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
    "DetectedLanguage",
    "DragomanError",
    "FinishReason",
    "Glossary",
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
    "StatusCode",
    "TimedOutError",
    "Timing",
    "Token",
    "Translation",
    "TranslationWarning",
    "UnavailableError",
    "WarningCode",
    "read_glossary",
]

_MODULES = (
    "_client",
    "_async_client",
    "_connection",
    "_errors",
    "_glossaries",
    "_options",
    "_results",
    "_retries",
)
"""The modules that have the public names; loaded when the first name is asked for.

gRPC comes with them, and reads its settings when it is loaded: the ``dragoman`` command has some
for it.
"""


if not typing.TYPE_CHECKING:  # else a type checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name in __all__:
            for module in _MODULES:
                if found := vars(importlib.import_module(f"{__name__}.{module}")).get(name):
                    globals()[name] = found
                    return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
