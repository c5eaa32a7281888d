"""What tests of the SDK share."""

from collections.abc import Iterator

import pytest

from dragoman_client import Client
from support.service_running import Running


@pytest.fixture(scope="module")
def client(running: Running) -> Iterator[Client]:
    with Client(running.server.address) as client:
        yield client
