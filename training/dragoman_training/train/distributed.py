"""Training with several processes, as ``torchrun`` starts them; or with one.

Every process computes which batch comes next, takes its share of the batch's pairs, and adds its
gradients to those of the others.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman_training.errors import RecipeError

T = TypeVar("T")

_PATIENCE = timedelta(hours=12)
"""How long the others wait while the first process prepares the data."""


@dataclass(frozen=True)
class World:
    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """The process that writes and prints."""
        return self.rank == 0

    def share(self, items: list[T]) -> list[T]:
        """This process's part of a list."""
        return items[self.rank :: self.size]

    def sum(self, values: Tensor) -> Tensor:
        """Add up over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def gather_shares(self, mine: list[T]) -> list[T]:
        """The opposite of ``share``: the whole list, in every process."""
        if self.size == 1:
            return mine
        shares: list[list[T]] = [[] for _ in range(self.size)]
        dist.all_gather_object(shares, mine)
        whole: list[T | None] = [None] * sum(map(len, shares))
        for rank, part in enumerate(shares):
            whole[rank :: self.size] = part
        return [item for item in whole if item is not None]

    def tell(self, message: str) -> str:
        """What the first process says, in every process."""
        if self.size == 1:
            return message
        said = [message]
        dist.broadcast_object_list(said)
        return said[0]

    def barrier(self) -> None:
        if self.size > 1:
            dist.barrier()


@contextmanager
def join_world(device_name: str) -> Iterator[World]:
    """The processes that train together, for the length of a run."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    device = _device(device_name, int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1:
        yield World(0, 1, device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield World(rank, size, device)
    finally:
        dist.destroy_process_group()


def _device(name: str, local_rank: int) -> torch.device:
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise RecipeError("training.device is 'cuda', but PyTorch finds no CUDA device here")
    if name == "cpu" or not available:
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)
