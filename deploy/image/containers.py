"""Images without a Docker engine: built by buildah, run by bubblewrap as Docker would run them."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RELEASE = "trixie"
BASE = f"debian:{RELEASE}-slim"
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
PATIENCE = 300.0
"""Seconds after which something that is waited for counts as failed."""

METRICS = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9464/metrics").read().decode())
"""


class ProofError(Exception):
    """Something does not hold; the message says what."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def check(holds: bool, what: str) -> None:
    if not holds:
        raise ProofError(f"it does not hold that {what}")
    say(f"  ok: {what}")


def wait_until(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise ProofError(f"waited {PATIENCE:.0f} s in vain for {what}")
        time.sleep(0.1)


def run(*command: str | Path, **more: Any) -> str:
    done = subprocess.run(
        list(map(str, command)), check=False, text=True, stdout=subprocess.PIPE, **more
    )
    if done.returncode:
        raise ProofError(
            f"{command[0]} ended with {done.returncode}: {' '.join(map(str, command))}"
        )
    return done.stdout.strip()


class Builder:
    """buildah with a store of its own: images of this machine are neither used nor touched."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        store, state = directory / "store", directory / "state"
        self._buildah = ("buildah", "--root", store, "--runroot", state)

    def __call__(self, *arguments: str | Path, **more: Any) -> str:
        return run(*self._buildah, *arguments, **more)

    def ensure_base(self) -> None:
        if self("images", "--quiet", "--filter", f"reference={BASE}"):
            return
        say(f"making {BASE} of {MIRROR}")
        root = self._directory / "base"
        shutil.rmtree(root, ignore_errors=True)
        run("debootstrap", "--variant=minbase", RELEASE, root, MIRROR)
        # Where a proxy inspects TLS, its certificate is here, and without it pip gets nowhere.
        for certificate in Path("/usr/local/share/ca-certificates").glob("*.crt"):
            target = root / "usr/local/share/ca-certificates" / certificate.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(certificate, target)
        container = self("from", "scratch")
        self("copy", "--quiet", container, root, "/")
        self("config", "--cmd", "bash", container)
        self("commit", "--quiet", "--rm", container, f"docker.io/library/{BASE}")
        shutil.rmtree(root)

    def build(self, target: str) -> str:
        """The image's name."""
        name = f"localhost/dragoman-proof:{target}"
        self(
            *("build", "--layers", "--pull-never", "--format", "docker", "--target", target),
            *("--isolation", "chroot", "--network", "host"),
            *("--build-arg", f"GPU_BASE={BASE}", "--tag", name, ROOT),
            stderr=sys.stderr,
        )
        return name

    @contextmanager
    def mounted(self, image: str) -> Iterator["Container"]:
        inspected = json.loads(self("inspect", "--type", "image", image))
        container = self("from", "--pull-never", image)
        try:
            yield Container(Path(self("mount", container)), inspected["Docker"]["config"])
        finally:
            self("umount", container)
            self("rm", container)


@dataclass(frozen=True)
class Container:
    """The root of an image, and what the image says about how to run it."""

    root: Path
    config: dict[str, Any]

    @property
    def _uid_and_gid(self) -> tuple[str, str]:
        uid, _, gid = self.config["User"].partition(":")
        return uid, gid

    def _unprivileged(self, environment: dict[str, str]) -> list[str]:
        uid, gid = self._uid_and_gid
        given = dict(pair.split("=", 1) for pair in self.config["Env"]) | environment
        return [
            *("setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", "--no-new-privs"),
            *("--inh-caps=-all", "--bounding-set=-all"),
            *("env", "--ignore-environment", *(f"{name}={text}" for name, text in given.items())),
        ]

    @contextmanager
    def running(self, **environment: str) -> Iterator["Running"]:
        report, written = os.pipe()
        command = [
            *("bwrap", "--ro-bind", str(self.root), "/", "--proc", "/proc", "--dev", "/dev"),
            *("--unshare-pid", "--as-pid-1", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
            *("--die-with-parent", "--chdir", self.config["WorkingDir"]),
            *("--json-status-fd", str(written), "--"),
            *self._unprivileged(environment),
            *self.config["Entrypoint"],
            *self.config["Cmd"],
        ]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[written]
        )
        os.close(written)
        try:
            with os.fdopen(report) as lines:
                pid = json.loads(lines.readline())["child-pid"]
                yield Running(process, pid, self._unprivileged(environment))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def health_check(self) -> list[str]:
        kind, *command = self.config["Healthcheck"]["Test"]
        check(kind == "CMD", "the image has a health check, and it needs no shell")
        return command


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[bytes]
    pid: int
    """Of the container's first process, as seen from outside."""
    unprivileged: list[str]

    def inside(self, *command: str) -> list[str]:
        """What `docker exec` would run."""
        enter = (
            "nsenter",
            "--target",
            str(self.pid),
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--uts",
        )
        return [*enter, "--root", "--wd", "--", *self.unprivileged, *command]

    def execute(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            self.inside(*command), check=False, text=True, capture_output=True, timeout=PATIENCE
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    def metric(self, series: str) -> float:
        _, text = self.execute("python", "-c", METRICS)
        values = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(series)]
        return float(values[0]) if values else 0.0

    def wait(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output.decode()
