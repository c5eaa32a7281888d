"""``dragoman health``, ``models``, ``score`` and ``alignment`` against a real server."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from dragoman_cli.model_table import print_models
from dragoman_client import Client, Model
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
    assert (model["source_languages"], model["target_languages"]) == (["en"], ["pt"])


def test_no_name_of_a_model_is_cut_and_many_languages_are_listed_below() -> None:
    name = "a-model-with-a-name-that-is-longer-than-the-terminal-is-wide[/b]"
    tags = tuple(f"l{first}{second}-Latn" for first in "abcdefgh" for second in "abcdefgh")
    one = Model(
        *(name, "20261118.1", "en", "mul", "float32", "cpu", 1024, 1024, 8, 64, "MIT"),
        source_languages=("en",),
        target_languages=tags,
    )
    other = replace(one, name="few", target_language="pt", target_languages=("pt", "pt-BR"))
    for width in (40, 200):
        file = StringIO()
        print_models([one, other], Console(file=file, width=width))
        lines = file.getvalue().splitlines()
        begin = lines.index(f"{name} translates into 64 languages:")
        above, below = lines[:begin], lines[begin + 1 :]
        assert any(name in line and "en → 64 languages" in line for line in above)
        assert any("few" in line and "en → pt, pt-BR" in line for line in above)
        assert ("precision" in above[1]) == (width == 200)  # a head, where it has room
        assert all(len(line) <= width and line.startswith("  l") for line in below)
        assert " ".join(map(str.strip, below)) == ", ".join(tags)


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
