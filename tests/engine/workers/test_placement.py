"""Which CPUs workers keep to."""

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman_server.engine.workers.placement import memory_nodes, own_nodes, parse_cpus, places

TWO_NODES = [[0, 1, 2, 3, 4], [8, 9, 10]]


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3\n", [0, 1, 2, 3]), ("0,4-5,9", [0, 4, 5, 9]), ("7", [7]), ("\n", [])],
)
def test_lists_of_linux(text: str, cpus: list[int]) -> None:
    assert parse_cpus(text) == cpus


def test_a_worker_has_cpus_of_one_node_while_there_are_any() -> None:
    assert places(3, 2, TWO_NODES) == [{0, 1}, {2, 3}, {8, 9}]


def test_what_is_left_of_several_nodes_is_used_in_the_end() -> None:
    assert places(4, 2, TWO_NODES) == [{0, 1}, {2, 3}, {8, 9}, {4, 10}]


def test_no_cpu_is_given_twice() -> None:
    given = places(8, 1, TWO_NODES)
    assert sum(map(len, given)) == len(frozenset().union(*given)) == 8


@pytest.mark.parametrize(("workers", "threads"), [(9, 1), (5, 2), (1, 9)])
def test_with_too_few_cpus_no_worker_is_kept_anywhere(workers: int, threads: int) -> None:
    assert places(workers, threads, TWO_NODES) == [frozenset()] * workers


def test_this_machine_has_cpus_to_give() -> None:
    nodes = memory_nodes()
    assert places(1, 1, nodes)[0]
    assert len({cpu for node in nodes for cpu in node}) == sum(map(len, nodes))


@pytest.mark.parametrize(("quota", "cpus"), [("max 100000", 8), ("800000 100000", 8), ("2 1", 0)])
def test_under_a_quota_no_worker_is_kept_anywhere(
    monkeypatch: pytest.MonkeyPatch, quota: str, cpus: int
) -> None:
    """Other containers on the machine would keep theirs to the same CPUs."""
    read_text = Path.read_text

    def read(path: Path, *arguments: Any) -> str:
        return quota if path.name == "cpu.max" else read_text(path, *arguments)

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(Path, "read_text", read)
    assert sum(map(len, own_nodes())) == cpus
