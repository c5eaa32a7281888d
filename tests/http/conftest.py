"""What tests of HTTP share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support import MODEL
from support.browser import chromium
from support.service_running import Running, few_rows, serving, settings_for, variant

HTTP = "127.0.0.1:0"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the default model, over gRPC and HTTP, that keeps glossaries."""
    kept = tmp_path_factory.mktemp("glossaries")
    settings = settings_for(http=HTTP, engine=few_rows(8, max_beam=4), glossaries=kept)
    with serving(settings) as running:
        yield running


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a model from English and one that says it is from Portuguese."""
    other = variant(tmp_path_factory.mktemp("models"), "pt-en", "pt", "en")
    settings = settings_for(MODEL, other, http=HTTP, engine=few_rows(4, max_beam=4))
    with serving(settings) as running:
        yield running


KEY, LIMITED, OTHER = "k" * 20, "l" * 20, "o" * 20


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that asks for keys, for whose clients it keeps glossaries.

    Two keys are for all models, and one is for a model that is not there.
    """
    path: Path = tmp_path_factory.mktemp("keys")
    keys = path / "keys.txt"
    keys.write_text(f"alice {KEY}\nbob {LIMITED} other\ncarol {OTHER}\n")
    settings = settings_for(
        http=HTTP, keys=keys, engine=few_rows(4), glossaries=path / "glossaries"
    )
    with serving(settings) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser; skips where there is none."""
    with chromium() as browser:
        yield browser
