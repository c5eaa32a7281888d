"""Translate a long file with ``dragoman translate``: memory stays flat, and runs can be resumed.

    python benchmarks/many_lines.py [--lines 100000] [--directory DIRECTORY]

Starts a server with models/en-pt on this machine and translates generated lines twice: once without
a break, and once killed midway with SIGKILL and then resumed. Ends with exit code 1 if the outputs
differ, if a line is lost, or if the client's memory grows by more than 8 MiB.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from measuring.servers import dragoman_server

MODEL = Path(__file__).parents[1] / "models" / "en-pt"
DRAGOMAN = (sys.executable, "-m", "dragoman_cli")
MAX_GROWTH = 8.0
"""MiB by which the client's resident memory may grow between an early and a late part of a run."""

SUBJECTS = ("The old man", "My sister", "The government", "A friend of mine", "The red car")
VERBS = ("wants to buy", "has never seen", "will not forget", "talks about", "is looking for")
OBJECTS = ("the house", "a new book", "this city", "the station", "her children", "a good plan")
ENDS = (".", " today.", " every year.", " in the morning?", ", and nobody knows why.")


def write_lines(path: Path, count: int) -> None:
    rng = random.Random(7)  # noqa: S311 - sentences, not secrets
    with path.open("w") as file:
        for number in range(count):
            words = " ".join(map(rng.choice, (SUBJECTS, VERBS, OBJECTS)))
            # Some empty, some with their number, so that a line that is lost or moved shows.
            line = "" if number % 50 == 49 else f"{words}{rng.choice(ENDS)}"
            file.write(f"{number}: {line}\n" if number % 10 == 0 else f"{line}\n")


@dataclass
class Run:
    """One run of the command, and its memory over time."""

    code: int = 0
    """Exit code of the command; below 0 where a signal ended it."""
    seconds: float = 0.0
    memory: list[tuple[int, float]] = field(default_factory=list)
    """Lines that were written so far, and MiB that were resident then."""

    @property
    def growth(self) -> float:
        """MiB between the peak of an early part and that of a late part.

        A difference of two moments would depend on which moments they are.
        """
        total = self.memory[-1][0] if self.memory else 0
        early = [mib for lines, mib in self.memory if 0.1 * total <= lines < 0.3 * total]
        late = [mib for lines, mib in self.memory if lines >= 0.7 * total]
        return max(late) - max(early) if early and late else 0.0


def translate(
    address: str, source: Path, output: Path, *more: str, kill_after: int | None = None
) -> Run:
    """Run ``dragoman translate``, and kill it after so many lines if a number is given."""
    partial = output.with_name(f".{output.name}.partial")
    command = [*DRAGOMAN, "translate", "--file", str(source), "--output", str(output)]
    run, began = Run(), time.monotonic()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*command, *more], env={**os.environ, "DRAGOMAN_ADDRESS": address}
    )
    lines, position = 0, 0
    while process.poll() is None:
        time.sleep(0.1)
        if not partial.exists():
            continue
        with partial.open("rb") as file:
            file.seek(position)
            new = file.read()
        position += len(new)
        lines += new.count(b"\n")
        run.memory.append((lines, resident(process.pid)))
        if kill_after is not None and lines >= kill_after:
            process.send_signal(signal.SIGKILL)
            break
    run.code, run.seconds = process.wait(), time.monotonic() - began
    run.memory = [(lines, mib) for lines, mib in run.memory if mib]
    return run


def resident(pid: int) -> float:
    """Return the MiB that are resident; 0 if the process has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def report(name: str, run: Run, lines: int) -> None:
    print(f"{name:9} {run.seconds:8.1f} s {lines / run.seconds:8.0f} lines/s  exit code {run.code}")
    step = max(1, len(run.memory) // 8)
    for done, mib in run.memory[::step]:
        print(f"{'':9} {done:8,} lines {mib:8.1f} MiB")
    print(f"{'':9} grew by {run.growth:.1f} MiB")


def problems(lines: int, directory: Path) -> list[str]:
    """Translate the lines both ways, and return what is wrong."""
    source, whole, resumed = (directory / name for name in ("lines.en", "whole.pt", "resumed.pt"))
    write_lines(source, lines)
    found = []
    with dragoman_server(MODEL, directory / "server.log") as server:
        address = server.address
        unbroken = translate(address, source, whole)
        report("unbroken", unbroken, lines)
        killed = translate(address, source, resumed, kill_after=lines // 2)
        report("killed", killed, killed.memory[-1][0] if killed.memory else 0)
        if killed.code != -signal.SIGKILL or resumed.exists():
            found.append("the run ended before it was killed: give more --lines")
        again = translate(address, source, resumed, "--resume")
        report("resumed", again, lines - (killed.memory[-1][0] if killed.memory else 0))
    if unbroken.code or again.code:
        found.append(f"exit codes are {unbroken.code} and {again.code}")
        return found
    came_out = whole.read_bytes().count(b"\n")
    if came_out != lines:
        found.append(f"{came_out} lines came out")
    if whole.read_bytes() != resumed.read_bytes():
        found.append("the resumed output differs from the unbroken one")
    found += [
        f"{name}: memory grew by {run.growth:.1f} MiB; at most {MAX_GROWTH} are allowed"
        for name, run in (("unbroken", unbroken), ("resumed", again))
        if run.growth > MAX_GROWTH
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--lines", type=int, default=100_000, help="lines of the file (default: %(default)s)"
    )
    parser.add_argument(
        "--directory", type=Path, help="directory to keep the files in (default: none are kept)"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.directory or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        found = problems(arguments.lines, directory)
    print("\n".join(found) or "identical, nothing lost, and memory flat")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
