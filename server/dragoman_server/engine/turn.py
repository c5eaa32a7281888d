"""A turn of a lane: what it is to do, and the doing, whoever drives the lane."""

import logging
import time
from dataclasses import dataclass, field

from dragoman_server.engine.core import Failure, Report, Ticket
from dragoman_server.engine.jobs import Job
from dragoman_server.engine.lane import GoOn, Lane, only_once

log = logging.getLogger(__name__)

MAX_SECONDS = 0.05
"""Seconds from the beginning of a turn after which it takes no further step: a lane is to be heard
of."""


@dataclass(frozen=True, eq=False)
class Work:
    """What a lane does in one turn."""

    began: float
    """Moment of ``time.monotonic()`` at which the turn was decided."""
    leaving: list[tuple[Ticket, Failure]] = field(default_factory=list)
    """Running sentences that leave before their end."""
    dropped: list[tuple[Job, Failure]] = field(default_factory=list)
    """Sentences that will never run."""
    admitted: list[Job] = field(default_factory=list)
    """Sentences that begin."""
    until: float = 0.0
    """Moment after which this turn takes no further step."""
    changes: int = 0
    """Changes that the front had seen when the turn was decided."""


def take_turn(lane: Lane, work: Work, go_on: GoOn = only_once) -> Report:
    """Do a turn's work. Whatever goes wrong, each of its sentences is answered or goes on.

    ``go_on`` is asked before each further step whether the lane may take it in this turn.
    """
    report = Report(lane.number)
    report.answers += [job.answer(failure=failure) for job, failure in work.dropped]
    graph_seconds = lane.graphs.seconds
    try:
        lane.leave(work.leaving, report)
        if work.admitted:
            lane.admit(work.admitted, report)
        lane.step(report, go_on)
    except Exception:
        log.exception("a step of lane %d failed, with %d sentences", lane.number, lane.running)
        report.faults += 1
        lane.fail_all(Failure.FAULT, report)
        answered = {answer.ticket for answer in report.answers}
        report.answers += [
            job.answer(failure=Failure.FAULT) for job in work.admitted if job.ticket not in answered
        ]
    report.graph_seconds = lane.graphs.seconds - graph_seconds
    report.turn_seconds = time.monotonic() - work.began
    return report
