"""``dragoman serve`` as a contender, called over gRPC by the SDK in this process."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dragoman_client import Options
from measuring.contenders import Answers, Contender, Run
from measuring.machine import divisions
from measuring.names import SERVED
from measuring.servers import Caller, dragoman_server
from subjects.subject import Subject, Text


def options_for(subject: Subject, beam: int) -> Options:
    """Return the SDK's options that make translations as long as the subject's are to be."""
    if subject.forced is None:
        return Options(beam_size=beam)
    return Options(beam_size=beam, min_tokens=subject.forced - 1, max_tokens=subject.forced)


@contextmanager
def served(bundle: Path, options: Options, rows: int, log: Path) -> Iterator[list[Contender]]:
    """Start a server for each division of the cores. Those that are idle do not disturb."""
    with ExitStack() as stack:
        found = []
        for lanes, threads in divisions():
            flags = ["--rows", str(rows), "--lanes", str(lanes), "--threads", str(threads)]
            process = stack.enter_context(dragoman_server(bundle, log, *flags))
            caller = stack.enter_context(Caller(process.address))
            run = _served_run(caller, options)
            found.append(Contender(SERVED, f"{lanes} × {threads}", run))
        yield found


def _served_run(caller: Caller, options: Options) -> Run:
    def run(texts: Sequence[Text], concurrent: int) -> Answers:
        made = caller.translate([text.text for text in texts], concurrent, options)
        return [translation.text for translation in made]

    return run
