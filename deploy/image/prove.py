#!/usr/bin/env python3
"""Build the image of the Dockerfile and run it, on a Debian machine without a Docker engine.

    sudo deploy/image/prove.py DIRECTORY [--target gpu]

buildah builds the whole Dockerfile on a base that debootstrap makes of the same Debian release;
bubblewrap then runs what the image says, as Docker would: its entry point as PID 1, its user by
number, without capabilities, every file system read-only, a network of its own. It must become
healthy by the image's own check, translate, and after SIGTERM finish what is under way and end
with 0.

What this is not: Docker's own builder, its default seccomp profile, or NVIDIA's base image. With
``--target gpu`` the same Debian takes the place of that base: the commands of the stages are run,
and the server must refuse to start where it can't have CUDA.

Needs root, and the packages debootstrap, buildah and bubblewrap. DIRECTORY, some 3 GB, is left
behind: what it has is not made again the next time.
"""

import argparse
import json
import os
import shutil
import signal
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
TOOLS = ("debootstrap", "buildah", "bwrap", "nsenter", "tar")
PATIENCE = 300.0
"""Seconds after which something that is waited for counts as failed."""

LONG_CALL = """
from dragoman_client import Client, Options
texts = [f"There are {n} people here, and all of them want to have dinner now." for n in range(300)]
with Client("localhost:50051", timeout=250) as client:
    done = client.translate_batch(texts, options=Options(beam_size=8))
print(len(done), all(t.text for t in done))
"""
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


def prove_cpu(container: Container) -> None:
    health = container.health_check()
    # Time for the long call to finish on a machine that is busy with other things, too.
    with container.running(DRAGOMAN_ALLOW_OPEN="true", DRAGOMAN_GRACE="240") as running:
        seen: list[tuple[int, str]] = []

        def is_healthy() -> bool:
            seen.append(running.execute(*health))
            if running.process.poll() is not None:
                raise ProofError(f"it ended: {running.wait()[1]}")
            return seen[-1][0] == 0

        wait_until(is_healthy, "a container that is healthy")
        check(seen[-1][1] == "serving", f"the health check passes: {seen[-1][1]!r}")
        prove_confinement(running)
        _, text = running.execute("dragoman", "translate", "Good morning.")
        check(text == "Bom dia.", f"it translates 'Good morning.': {text!r}")
        check(running.metric("dragoman_ready") == 1, "it serves metrics: dragoman_ready is 1")
        prove_drain(running, health)
    with container.running() as running:
        code, output = running.wait()
        lines = output.strip().splitlines()
        check(
            code == 2 and len(lines) == 1 and "--allow-open" in output,
            f"without TLS, keys or leave to be open it refuses in one line: {output.strip()!r}",
        )


def prove_confinement(running: Running) -> None:
    _, status = running.execute("cat", "/proc/1/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    check(facts["Name"] == "tini", f"PID 1 is {facts['Name']}")
    check(facts["Uid"].split()[1] == "10001", f"its user is {facts['Uid'].split()[1]}")
    check(
        all(int(facts[name], 16) == 0 for name in ("CapPrm", "CapEff", "CapBnd")),
        "it has no capabilities and can get none",
    )
    for path in ("/models/x", "/tmp/x", "/opt/dragoman/x"):  # noqa: S108
        code, text = running.execute("touch", path)
        check(code != 0 and "Read-only" in text, f"{path} can't be written: the root is read-only")
    _, found = running.execute("find", "/opt/dragoman", "-maxdepth", "5", "-name", "*.dist-info")
    names = {Path(line).name.partition("-")[0].lower() for line in found.splitlines()}
    check("dragoman" in names and not names & {"torch", "onnx", "pip"}, "no torch, onnx or pip")
    _, found = running.execute("find", "/opt/dragoman", "-name", "dragoman_*", "-type", "d")
    packages = sorted(path.rpartition("/")[2] for path in found.splitlines())
    check(
        packages == ["dragoman_cli", "dragoman_client", "dragoman_server"],
        f"only {' and '.join(packages)}",
    )
    _, text = running.execute("dragoman", "--help")
    check("serve" in text and "train" not in text, "only commands of server and client are offered")


def prove_drain(running: Running, health: list[str]) -> None:
    long = subprocess.Popen(
        running.inside("python", "-c", LONG_CALL), text=True, stdout=subprocess.PIPE
    )
    series = 'dragoman_requests_in_flight{rpc="Translate"}'

    def is_under_way() -> bool:
        if long.poll() is not None:
            raise ProofError("the long call ended before it could be interrupted")
        return running.metric(series) == 1

    wait_until(is_under_way, "a long call under way")
    os.kill(running.pid, signal.SIGTERM)
    code, text = running.execute(*health)
    check(
        (code, text) == (1, "not serving"), f"after SIGTERM health says {text!r}, exit code {code}"
    )
    output, _ = long.communicate(timeout=PATIENCE)
    check(
        output.strip() == "300 True", "the call that was under way got all of its 300 translations"
    )
    code, log = running.wait()
    check('"drained"' in log, "the log says that it drained")
    check(code == 0, f"it ended with exit code {code}")


def prove_gpu(container: Container) -> None:
    container.health_check()
    bundle = "/opt/bundle"
    shutil.copytree(ROOT / "models" / "en-pt", f"{container.root}{bundle}", dirs_exist_ok=True)
    with container.running(DRAGOMAN_ALLOW_OPEN="true", DRAGOMAN_BUNDLES=bundle) as running:
        code, output = running.wait()
    last = output.strip().splitlines()[-1]
    check(code == 2 and "float16" in last, f"an int8 bundle is refused on CUDA: {last!r}")
    code, text = run_python(
        container, "import onnxruntime as o; print(o.get_available_providers())"
    )
    check("CUDAExecutionProvider" in text, f"onnxruntime is the one with CUDA: {text!r}")


def run_python(container: Container, script: str) -> tuple[int, str]:
    command = ["bwrap", "--ro-bind", str(container.root), "/", "--proc", "/proc", "--dev", "/dev"]
    python = "/opt/dragoman/bin/python"
    done = subprocess.run(
        [*command, python, "-c", script], check=False, text=True, stdout=subprocess.PIPE
    )
    return done.returncode, done.stdout.strip()


PROOFS = {"cpu": prove_cpu, "gpu": prove_gpu}


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the image and run it, without Docker.")
    parser.add_argument("directory", type=Path, help="for the store of images; kept")
    parser.add_argument("--target", choices=PROOFS, default="cpu")
    arguments = parser.parse_args()
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        sys.exit(
            f"prove.py: {', '.join(missing)} missing: apt install debootstrap buildah bubblewrap"
        )
    if os.geteuid() != 0:
        sys.exit("prove.py: it must be run as root, which debootstrap and mounts need")
    arguments.directory.mkdir(parents=True, exist_ok=True)
    try:
        builder = Builder(arguments.directory.resolve())
        builder.ensure_base()
        image = builder.build(arguments.target)
        with builder.mounted(image) as container:
            size = int(run("du", "--summarize", "--block-size=1M", container.root).split()[0])
            say(f"{image}, {size} MB with its base, unprivileged on a read-only root:")
            PROOFS[arguments.target](container)
    except (ProofError, subprocess.TimeoutExpired) as error:
        sys.exit(f"prove.py: {error}")
    say("proved.")


if __name__ == "__main__":
    main()
