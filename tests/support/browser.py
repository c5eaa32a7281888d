"""A real Chromium, driven by playwright: the one of the system, none is downloaded."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

from support.http_client import address_of
from support.service_running import Running

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE_MS = 60_000.0
"""Milliseconds after which what a test expects of a page is missing; nothing takes that long."""
_LOST = "Failed to load resource"
"""What Chromium itself writes to the console where a request fails."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium; skips where there is none."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("there is no Chromium: Debian's package is `chromium`")
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        try:
            yield browser
        finally:
            browser.close()


def page_of(running: Running) -> str:
    """Return the address of a server's page."""
    return f"http://{address_of(running)}/"


@contextmanager
def visiting(
    browser: Browser, url: str, *, requests_may_fail: bool = False, script: str = "", **context: Any
) -> Iterator[Page]:
    """Open an address as a new reader. Nothing may go wrong in it, and nothing leave its host.

    ``script`` runs before anything of the page does.
    """
    own = browser.new_context(
        viewport=context.pop("viewport", {"width": 1440, "height": 900}), **context
    )
    wrong: list[str] = []
    hosts: set[str] = set()

    def said(message: ConsoleMessage) -> None:
        expected = requests_may_fail and message.text.startswith(_LOST)
        if message.type in ("error", "warning") and not expected:
            wrong.append(message.text)

    def failed(error: Error) -> None:
        wrong.append(str(error))

    def asked(request: Request) -> None:
        hosts.add(urlsplit(request.url).netloc)

    try:
        own.add_init_script(script)
        page = own.new_page()
        page.on("console", said)
        page.on("pageerror", failed)
        page.on("request", asked)
        page.goto(url)
        yield page
        assert wrong == []
        assert hosts == {urlsplit(url).netloc}
    finally:
        own.close()


def violations(page: Page) -> list[str]:
    """Return what axe-core finds wrong with a page for people with disabilities."""
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]
