"""What tests of the command share."""

import pytest

from support.service_running import Running


@pytest.fixture(scope="module")
def at(running: Running) -> dict[str, str]:
    """The environment that names the server."""
    return {"DRAGOMAN_ADDRESS": running.server.address}
