"""Whether this machine computes what the exporter did: golden sentences, alone and together."""

from dataclasses import dataclass

from dragoman_server.bundle.reading import Bundle
from dragoman_server.runtime.checks.company import alignments_depend_on_company
from dragoman_server.runtime.checks.golden import replay
from dragoman_server.runtime.graphs import Graphs


@dataclass(frozen=True)
class MachineCheck:
    """What a bundle's golden sentences came to here."""

    golden_error: float
    """Largest difference between a log-probability here and in the bundle."""
    alignments_depend: bool
    """Whether the last bits of alignments depend on what else is in the batch, on this CPU."""


def check_machine(bundle: Bundle, graphs: Graphs) -> MachineCheck:
    """Decode the golden sentences. Raises ``BundleError`` where tokens or scores are not right."""
    return MachineCheck(replay(bundle, graphs), alignments_depend_on_company(bundle, graphs))
