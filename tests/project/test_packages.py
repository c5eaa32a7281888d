"""What each package may load: the SDK stays light, the server never needs PyTorch."""

import os
import subprocess
import sys

import pytest

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded_by(package: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, package], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        (
            "dragoman_client",
            {"typer", "rich", "numpy", "torch", "onnxruntime", "sentencepiece", "matplotlib"},
        ),
        ("dragoman_server", {"torch", "dragoman_training"}),
        ("dragoman_documents", {"grpc", "numpy", "torch", "dragoman_client", "dragoman_server"}),
    ],
)
def test_loads_no_more_than_it_may(package: str, forbidden: set[str]) -> None:
    assert loaded_by(package).isdisjoint(forbidden)


def test_the_check_sees_what_is_loaded() -> None:
    assert {"torch", "numpy"} <= loaded_by("dragoman_training")


def test_commands_are_described_without_their_extra() -> None:
    """All of them, at each start of the command: what they need comes when they are called."""
    script = """
import sys
from importlib.metadata import entry_points
for entry in entry_points(group="dragoman.commands"):
    entry.load()
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert {"dragoman_cli", "dragoman_server", "dragoman_training"} <= loaded
    assert loaded.isdisjoint({"torch", "onnxruntime", "numpy", "matplotlib", "rich"})


def test_onnxruntime_sends_nothing_home() -> None:
    """Its builds read this when they are loaded."""
    script = """
import dragoman_server, os, sys
print("onnxruntime" in sys.modules, os.environ["ORT_DISABLE_TELEMETRY"])
"""
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout.split() == ["False", "1"]
