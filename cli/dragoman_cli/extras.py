"""How to install an extra that is missing, by the way in which Dragoman itself was installed."""

import json
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra here."""
    try:
        origin = distribution("dragoman").read_text("direct_url.json")
    except PackageNotFoundError:
        origin = None
    return f"{_pip()} install {_requirement(extra, json.loads(origin) if origin else None)}"


def _requirement(extra: str, origin: dict[str, object] | None) -> str:
    """Return what to ask pip for. pip keeps a file on the origin of what was not in an index."""
    if origin is None:
        return f"'dragoman[{extra}]'"
    url = str(origin.get("url", ""))
    vcs = origin.get("vcs_info")
    if isinstance(vcs, dict):
        return f"'dragoman[{extra}] @ {vcs.get('vcs')}+{url}@{vcs.get('commit_id')}'"
    if urlsplit(url).scheme != "file":
        return f"'dragoman[{extra}] @ {url}'"
    path = Path(unquote(urlsplit(url).path))
    if not path.exists():
        return f"'.[{extra}]' in a clone of the repository"
    directory = origin.get("dir_info")
    editable = "-e " if isinstance(directory, dict) and directory.get("editable") else ""
    return f"{editable}'{_from_here(path)}[{extra}]'"


def _pip() -> str:
    """Return pip as a shell finds it, or by its path where that would be another one."""
    own = Path(sys.executable).with_name("pip")
    found = shutil.which("pip")
    return "pip" if found and Path(found) == own else str(_from_here(own))


def _from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
