"""Two thousand random requests: each sentence is answered once, and nothing is left of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import SUPPORT
from support.engine_bundles import seeded_bundle

SOAK = SUPPORT / "engine_soak.py"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_thousands_of_requests_leave_nothing_behind() -> None:
    run = subprocess.run(
        [sys.executable, SOAK, seeded_bundle().path, "2000"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    outcome = json.loads(run.stdout)
    ends = outcome["ends"]
    assert sum(ends.values()) == outcome["submitted"] > 2000
    assert outcome["unexpected"] == outcome["missing"] == 0
    assert ends.keys() == {"answered", "cancelled", "expired"}
    assert min(ends.values()) > 100
    assert outcome["left"] == []
    first, last = outcome["idle"]
    for now, then in ((last, first), (outcome["after"], outcome["before"])):
        assert now["threads"] == then["threads"]
        assert now["descriptors"] == then["descriptors"]
    assert last["objects"] < first["objects"] + 100, "some of each request stay"
    resident = outcome["resident"]
    quarter = len(resident) // 4
    second, fourth = resident[quarter : 2 * quarter], resident[3 * quarter :]
    assert max(fourth) <= 1.03 * max(second)
