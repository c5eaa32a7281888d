"""DeepL's own client, as it is, against a server of ours."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from unittest.mock import patch

import deepl

from support.http_client import address_of
from support.service_running import Running


@contextmanager
def deepl_client(running: Running, key: str = "any") -> Iterator[deepl.DeepLClient]:
    """Open a client that does not try again, so that tests see the first error."""
    found = deepl.DeepLClient(key, server_url=f"http://{address_of(running)}")
    with patch.object(deepl.http_client, "max_network_retries", 0), closing(found):
        yield found
