"""Which CPUs each worker keeps to: of one memory node where it can be, and of no other worker."""

import os
from collections.abc import Sequence
from pathlib import Path

from dragoman_server.engine.settings import available_cores

_NODES = Path("/sys/devices/system/node")
_ANY: frozenset[int] = frozenset()


def places(workers: int, threads: int, nodes: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    """Return the CPUs of each worker; empty sets, for any, where there are too few.

    ``nodes`` has the CPUs of each memory node.
    """
    if workers * threads > sum(map(len, nodes)):
        return [_ANY] * workers
    groups: list[list[int]] = []
    left: list[int] = []
    for node in nodes:
        whole = len(node) // threads * threads
        groups += [list(node[at : at + threads]) for at in range(0, whole, threads)]
        left += node[whole:]
    groups += [left[at : at + threads] for at in range(0, len(left) // threads * threads, threads)]
    return [frozenset(group) for group in groups[:workers]]


def own_nodes() -> list[list[int]]:
    """Return the CPUs of each memory node that workers may be kept to; none under a quota.

    A quota is a share of the time of all CPUs. Containers under one would keep their workers to the
    same first CPUs of a machine, and crowd there while others are idle.
    """
    nodes = memory_nodes()
    return nodes if available_cores() == sum(map(len, nodes)) else []


def memory_nodes() -> list[list[int]]:
    """Return the CPUs of each memory node that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    allowed = os.sched_getaffinity(0)
    nodes: list[list[int]] = []
    for directory in sorted(_NODES.glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        cpus = parse_cpus((directory / "cpulist").read_text())
        nodes.append([cpu for cpu in cpus if cpu in allowed])
    known = {cpu for node in nodes for cpu in node}
    rest = sorted(allowed - known)
    return [node for node in (*nodes, rest) if node]


def parse_cpus(text: str) -> list[int]:
    """Return the numbers of a list as Linux writes it: ``0-3,8,10-11``."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus += range(int(first), int(last or first) + 1)
    return cpus
