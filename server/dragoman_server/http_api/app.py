"""All that is answered over HTTP: which path goes where."""

import asyncio
from pathlib import Path

from grpc import StatusCode
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from dragoman_server.http_api.bodies import Bodies
from dragoman_server.http_api.calls import REQUEST_ID
from dragoman_server.http_api.deepl.api import DeepL
from dragoman_server.http_api.json_messages import to_json
from dragoman_server.http_api.libretranslate import LibreTranslate
from dragoman_server.http_api.native import Native, error_value
from dragoman_server.http_api.openapi.description import openapi
from dragoman_server.http_api.static import Page
from dragoman_server.service.auth import key_in
from dragoman_server.service.calls import request_id
from dragoman_server.service.errors import CallError
from dragoman_server.service.server import Server

_PAGE, _DOCS = (Path(__file__).parent / name for name in ("page", "docs_page"))
_CORS_SECONDS = 600
"""Seconds for which a browser may remember who may call."""


class Application:
    """The application of ASGI that a server has."""

    def __init__(self, server: Server) -> None:
        self.is_ready = False
        """Whether requests are taken."""
        self._metrics = server.metrics
        self._openapi = to_json(openapi())
        bodies = Bodies(server.settings)
        self._calls = server.calls
        self._native = Native(server, bodies)
        libretranslate = LibreTranslate(server, bodies)
        calls = [*self._native.calls(), *libretranslate.calls(), *DeepL(server, bodies).calls()]
        self.rpcs = [route.path for route in calls]
        """Names of all calls, for metrics."""
        routes: list[BaseRoute] = [
            *calls,
            *libretranslate.others(),
            Route("/health", self.health),
            Route("/health/live", self.live),
            Route("/health/ready", self.ready),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.openapi),
            Mount("/docs", Page(_DOCS)),
        ]
        # A route for each file, since what is mounted at / would take the paths of calls too, by
        # other methods than theirs.
        page = Page(_PAGE)
        files = sorted(each for each in _PAGE.rglob("*") if each.is_file())
        routes += [Route("/", page), *(Route(f"/{f.relative_to(_PAGE)}", page) for f in files)]
        self._app = Starlette(
            routes=routes,
            middleware=_middleware(server.settings.origins),
            exception_handlers={HTTPException: _not_there},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def health(self, request: Request) -> Response:
        return _status(200, "ok") if self.is_ready else _status(503, "not ready")

    async def live(self, request: Request) -> Response:
        return _status(200, "live")

    async def ready(self, request: Request) -> Response:
        return _status(200, "ready") if self.is_ready else _status(503, "not ready")

    async def openapi(self, request: Request) -> Response:
        return Response(self._openapi, media_type="application/json")

    async def metrics(self, request: Request) -> Response:
        try:
            self._calls.client_of(key_in(request.headers.get("authorization", "")))
        except CallError as error:
            return self._native.error(error, request_id(""))
        text = await asyncio.to_thread(generate_latest, self._metrics.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)


def _middleware(origins: list[str]) -> list[Middleware]:
    """Let pages of other origins call, where that is wanted."""
    if not origins:
        return []
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Retry-After", REQUEST_ID],
        max_age=_CORS_SECONDS,
    )
    return [cors]


async def _not_there(request: Request, error: Exception) -> Response:
    """Answer for a path that is not there, or not for this method."""
    assert isinstance(error, HTTPException)
    found = _NoSuchMethodError() if error.status_code == 405 else _NoSuchPathError()
    body = to_json(error_value(found, request_id(request.headers.get(REQUEST_ID, ""))))
    return Response(body, error.status_code, error.headers, "application/json")


class _NoSuchPathError(CallError):
    code = StatusCode.NOT_FOUND
    reason = "UNKNOWN_PATH"

    def __init__(self) -> None:
        super().__init__("there is nothing at this path; /docs lists what there is")


class _NoSuchMethodError(CallError):
    code = StatusCode.UNIMPLEMENTED
    reason = "UNKNOWN_METHOD"

    def __init__(self) -> None:
        super().__init__("this path does not take this method; /docs lists what there is")


def _status(code: int, status: str) -> Response:
    headers = {"cache-control": "no-store"}
    return Response(to_json({"status": status}), code, headers, "application/json")
