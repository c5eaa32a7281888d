"""The command that installs a missing extra works where it is shown."""

import os
import sys
from pathlib import Path

import pytest

from dragoman_cli import extras
from dragoman_cli.extras import how_to_install


class Installed:
    """What pip keeps of an installation."""

    def __init__(self, origin: str | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.origin


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "'dragoman[plot]'"),
        ('{"dir_info": {"editable": true}, "url": "file://HERE"}', "-e '.[plot]'"),
        ('{"dir_info": {"editable": true}, "url": "file://HERE/a%20b"}', "-e 'a b[plot]'"),
        ('{"dir_info": {}, "url": "file:///usr"}', "'/usr[plot]'"),
        ('{"dir_info": {}, "url": "file://HERE/gone"}', "'.[plot]' in a clone of the repository"),
        (
            '{"url": "https://example.com/d.git", "vcs_info": {"vcs": "git", "commit_id": "12ab"}}',
            "'dragoman[plot] @ git+https://example.com/d.git@12ab'",
        ),
        ('{"url": "https://example.com/d.whl"}', "'dragoman[plot] @ https://example.com/d.whl'"),
    ],
)
def test_it_follows_how_dragoman_was_installed(
    origin: str | None, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    told = origin and origin.replace("HERE", str(tmp_path))
    monkeypatch.setattr(extras, "distribution", lambda name: Installed(told))
    assert how_to_install("plot") == f"pip install {wanted}"


def test_pip_has_its_path_where_a_shell_would_find_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "pip"
    other.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(Path(sys.executable).parents[1])
    assert how_to_install("plot").startswith(f"bin{os.sep}pip install ")
