"""What the API says of jobs."""

from __future__ import annotations

import pytest

from controller.live.progress import JobProgress
from controller.service.jobs import Allocation, Job, Phase, Role
from controller.service.messages import job_message
from topologies import WorkloadOptions, parse
from topologies.network import wire

NETWORK = wire(parse("fat-tree:k=4", WorkloadOptions()), ["core3"])


@pytest.mark.parametrize(
    ("phase", "roles", "reallocations"),
    [
        (Phase.STARTING, (Role.NEW,), 0),
        (Phase.RUNNING, (Role.CURRENT,), 0),
        (Phase.INSTALLING, (Role.CURRENT, Role.NEW), 0),
        (Phase.DRAINING, (Role.PAST, Role.OLD, Role.CURRENT), 2),
    ],
)
def test_a_job_can_be_shown_in_every_phase(
    phase: Phase, roles: tuple[Role, ...], reallocations: int
) -> None:
    allocations = tuple(
        Allocation(epoch, "smc", 1, ("core3",), 0, role, absent=(1,))
        for epoch, role in enumerate(roles, start=1)
    )
    job = Job(2, "reduce", None, 7, None, 0, 4, phase, allocations, root="core3", avoids=("core0",))
    shown = job_message(NETWORK, job, None)
    assert (shown.phase, shown.reallocations) == (phase, reallocations)
    assert (shown.root, list(shown.avoids), list(shown.left_out)) == ("core3", ["core0"], ["w1"])


def test_a_job_that_ended_while_it_was_asked_says_why() -> None:
    allocation = Allocation(1, "smc", 1, ("core3",), 0, Role.CURRENT)
    result = '{"detail": "host w2 was killed, and the job needs it", "completed": 5}'
    job = Job(
        2, "reduce", None, 7, None, 0, 4, Phase.FAILED, (allocation,), root="core3", result=result
    )
    shown = job_message(NETWORK, job, JobProgress(None, ()))
    assert shown.detail == "host w2 was killed, and the job needs it"
    assert shown.completed == 5
