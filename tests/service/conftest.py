"""What tests of the service share."""

from collections.abc import Iterator

import pytest

from support.service_running import Running, few_rows, serving, settings_for


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A server of the default model with few rows, so that they are soon all in use."""
    with serving(settings_for(engine=few_rows(4, max_beam=4))) as running:
        yield running
