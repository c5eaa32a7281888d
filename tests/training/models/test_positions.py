"""Position encodings."""

import math

import pytest
import torch

from dragoman_training.models.positions import sinusoids, tensor2tensor_sinusoids


@pytest.mark.parametrize(("position", "i"), [(0, 0), (1, 0), (17, 3), (99, 15)])
def test_sinusoids_are_the_papers_formula(position: int, i: int) -> None:
    table = sinusoids(100, 32)
    angle = position / 10000 ** (2 * i / 32)
    assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
    assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_an_offset_is_a_rotation() -> None:
    """The paper's reason: position p + k is a linear function of position p."""
    table = sinusoids(60, 8).double()
    solution = torch.linalg.lstsq(table[:40], table[5:45]).solution
    torch.testing.assert_close(table[:40] @ solution, table[5:45], atol=1e-4, rtol=0)


@pytest.mark.parametrize(("position", "i"), [(0, 0), (1, 0), (17, 3), (99, 15)])
def test_tensor2tensors_waves_reach_the_slowest_at_the_end(position: int, i: int) -> None:
    """All sines, then all cosines, with frequencies from 1 to 1/10000, both included."""
    table = tensor2tensor_sinusoids(100, 32)
    angle = position / 10000 ** (i / 15)
    assert table[position, i].item() == pytest.approx(math.sin(angle), abs=1e-5)
    assert table[position, 16 + i].item() == pytest.approx(math.cos(angle), abs=1e-5)
