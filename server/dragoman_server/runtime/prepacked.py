"""Weights as onnxruntime uses them, kept on disk so that the processes of a machine share them.

onnxruntime lays out weights anew for the kernels of the CPU, in memory of its own. Here that is
done once and written to a cache directory; whoever opens the graphs from there maps the files, and
all of them have one copy in memory. What is written depends on the bundle, on onnxruntime and on
the CPU, and so does its place.

    DIRECTORY/KEY/encoder.onnx, encoder.bin, decoder.onnx, decoder.bin, …
"""

import hashlib
import logging
import os
import shutil
import tempfile
from pathlib import Path

import onnxruntime as ort

from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.errors import BundleError

log = logging.getLogger(__name__)

_MAX_ENTRIES = 16
"""Most entries of a cache directory; the one that was used longest ago goes first."""
_MIN_BYTES = 1024
"""Smallest weights that are kept beside the graph instead of in it."""


def default_directory() -> Path | None:
    """Return the cache directory of whoever runs this; None, said in the log, for who has no home.

    Users of containers often have none.
    """
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        log.warning("weights are not shared between processes: no home directory, nor a cache_dir")
        return None
    return Path(base) / "dragoman"


def entry_of(bundle: RunnableBundle, directory: Path) -> Path:
    """Return where the prepacked weights of a bundle are or would be, for this machine."""
    identity = hashlib.sha256()
    for name, stored in sorted(bundle.manifest.files.items()):
        identity.update(f"{name} {stored.sha256}\n".encode())
    identity.update(f"{ort.__version__} {ort.get_build_info()}\n{_cpu()}".encode())
    return directory / identity.hexdigest()[:32]


def write_entry(bundle: RunnableBundle, directory: Path) -> Path | None:
    """Prepack all graphs of a bundle, unless they are there. Returns where they are.

    Returns None, and says why in the log, where they can't be written: they are of use, but
    everything works without.
    """
    entry = entry_of(bundle, directory)
    try:
        if entry.is_dir():
            os.utime(entry)
            return entry
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(directory)
        aside = Path(tempfile.mkdtemp(prefix=".partial-", dir=directory))
        try:
            for name in bundle.manifest.graphs:
                _prepack(bundle.path / name, aside)
            _rename(aside, entry)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        _evict(directory, entry)
    except (OSError, BundleError) as error:
        log.warning("weights are not shared between processes: %s", error)
        return None
    return entry


def _prepack(graph: Path, directory: Path) -> None:
    from dragoman_server.runtime.sessions import open_session

    weights = graph.with_suffix(".bin").name
    open_session(
        graph,
        "cpu",
        threads=1,
        spin=False,
        optimized=directory / graph.name,
        entries={
            "session.save_external_prepacked_constant_initializers": "1",
            "session.optimized_model_external_initializers_file_name": weights,
            "session.optimized_model_external_initializers_min_size_in_bytes": str(_MIN_BYTES),
        },
    )


def _rename(aside: Path, entry: Path) -> None:
    """Make an entry appear whole, or find that another process was first."""
    for path in aside.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    try:
        aside.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise


def _check_owner(directory: Path) -> None:
    """Refuse a directory that others may write to: they could put weights of their own there."""
    status = directory.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{directory}: others may write to it")


def _evict(directory: Path, kept: Path) -> None:
    """Remove the entries that were used longest ago, and what was left half written."""
    entries = [path for path in directory.iterdir() if path.is_dir() and path != kept]
    entries.sort(key=lambda path: path.stat().st_mtime)
    for old in entries[: max(0, len(entries) + 1 - _MAX_ENTRIES)]:
        shutil.rmtree(old, ignore_errors=True)


def _cpu() -> str:
    """Return what onnxruntime chooses its kernels by: the model of the CPU and what it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    wanted = ("model name", "flags", "Features", "CPU part")
    found = {line.partition(":")[0].strip(): line for line in lines}
    return "\n".join(found[name] for name in wanted if name in found)
