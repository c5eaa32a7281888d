"""The proof against PyTorch compares steps by sample: it must notice a fault at any of them."""

from pathlib import Path

import pytest
import torch

from dragoman_export.bundle_files import write_unverified
from dragoman_export.errors import VerificationError
from dragoman_export.proofs.against_torch import RAGGED_ROWS, check_against_model
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.models.transformer import Transformer
from support.models import tiny_model

LIMIT = 40


def proof(model: Transformer, graphs: Graphs) -> list[tuple[int, int]]:
    """Compare, and return the progress that was told."""
    told: list[tuple[int, int]] = []
    check_against_model(graphs, model, lambda _, done, total: told.append((done, total)))
    return told


@pytest.mark.parametrize("decoder", ["attention", "ssru"])
def test_a_fault_of_any_weight_is_noticed_at_any_step(decoder: str, tmp_path: Path) -> None:
    model = tiny_model(seed=3, decoder=decoder, positions="learned", max_length=LIMIT)
    bundle = write_unverified(model, tmp_path, "float32")
    graphs = Graphs(bundle, GraphSettings(rows=RAGGED_ROWS))
    told = proof(model, graphs)
    total = told[-1][1]
    assert told[-1] == (total, total)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len(told) > LIMIT
    for name, parameter in model.named_parameters():
        kept = parameter.detach().clone()
        with torch.no_grad():
            # Of positions only one, that no short batch has, and that is none of the sample.
            part = parameter[21] if "positions" in name else parameter
            part += torch.randn(part.shape, generator=torch.Generator().manual_seed(1)) / 10
        with pytest.raises(VerificationError, match="differs from PyTorch by"):
            proof(model, graphs)
        with torch.no_grad():
            parameter.copy_(kept)
    proof(model, graphs)
