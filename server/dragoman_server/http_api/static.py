"""Files for browsers: the page for people, with what it may load and who may show it."""

import os

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Nothing comes from another host, nothing inline runs, and no other page shows ours."""


class Page(StaticFiles):
    """The files of a directory, ``index.html`` for the directory itself."""

    def __init__(self, directory: "str | os.PathLike[str]") -> None:
        super().__init__(directory=directory, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update({**SECURITY_HEADERS, "cache-control": "no-cache"})
        return response
