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
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from containers import (
    PATIENCE,
    ROOT,
    Builder,
    Container,
    ProofError,
    Running,
    check,
    run,
    say,
    wait_until,
)

TOOLS = ("debootstrap", "buildah", "bwrap", "nsenter", "tar")
"""Programs that it takes."""

LONG_CALL = """
from dragoman_client import Client, Options
texts = [f"There are {n} people here, and all of them want to have dinner now." for n in range(300)]
with Client("localhost:50051", timeout=250) as client:
    done = client.translate_batch(texts, options=Options(beam_size=8))
print(len(done), all(t.text for t in done))
"""


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
