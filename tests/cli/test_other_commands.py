"""``dragoman health``, ``models``, ``score`` and ``alignment`` against a real server."""

import json
from pathlib import Path

from dragoman_client import Client
from support.client_servers import SMALL_FILES, dragoman, error_of
from support.service_running import Running


def test_health(running: Running, at: dict[str, str]) -> None:
    run = dragoman("health", environment=at)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"serving\n", b"")


def test_models(at: dict[str, str]) -> None:
    run = dragoman("models", environment=at)
    assert run.returncode == 0
    assert "en → pt" in run.stdout.decode()
    (model,) = json.loads(dragoman("models", "--json", environment=at).stdout)
    assert model["name"] == "en-pt"


def test_scores(running: Running, at: dict[str, str]) -> None:
    run = dragoman("score", "Good morning.", "Bom dia.", "Mesa.", environment=at)
    good, bad = (line.split(maxsplit=1) for line in run.stdout.decode().splitlines())
    assert (good[1], bad[1]) == ("Bom dia.", "Mesa.")
    assert float(good[0]) > float(bad[0])
    arguments = ("score", "--json", "Good morning.", "Bom dia.")
    (found,) = json.loads(dragoman(*arguments, environment=at).stdout)
    with Client(running.server.address) as client:
        assert found["score"] == client.score([("Good morning.", "Bom dia.")])[0].score
    assert found["tokens"][0]["piece"]


def test_an_alignment_is_drawn_whole_or_not_at_all(at: dict[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    cache = {**at, "MPLCONFIGDIR": str(tmp_path / "cache")}
    arguments = ("alignment", "Where is the $5 station?", "--output", picture)
    run = dragoman(*arguments, environment=cache)
    assert run.returncode == 0, run.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run.stdout.decode().splitlines()[1] == str(picture)

    whole = picture.read_bytes()
    for name in ("picture.png", "picture.svg"):
        output = tmp_path / name
        run = dragoman(*arguments[:3], output, environment=cache, before=SMALL_FILES)
        assert error_of(run, 1) == f"{output}: File too large"
    assert picture.read_bytes() == whole
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cache", "picture.png"]
