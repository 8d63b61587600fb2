"""A run goes on without a worker that has died, over the same tree, and measures that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.compile import JobPlan, destination_bits
from controller.endpoints import absent_ranks, job_sources
from controller.errors import RunFailedError
from controller.measurement import Measurement, add_measurements, measure
from controller.planning import Plan, plan_given
from controller.rescue import Tell
from controller.service.admission import job_tree
from controller.switches import SwitchControl
from controller.testbed import Testbed
from topologies.network import Network
from traffic.commands import Exclude, Follow
from traffic.epochs import Term
from traffic.reports import JobOutcome


def measure_without(
    testbed: Testbed,
    planned: Plan,
    plans: Sequence[JobPlan],
    worker: str,
    outcomes: Sequence[JobOutcome],
) -> Measurement | None:
    """What links carried of the chunks that are summed without a worker; None if there are none.

    Those are of the epoch after that of `plans`, whose messages switches count apart. What the
    epoch before had in flight when the worker died is not among them; it is sent again.
    """
    network = testbed.network
    topology = network.topology
    left = [host.rank for host in network.workers if host.name != worker]
    tree = job_tree(topology, left, network)
    fewer = replace(topology, overlay=replace(topology.overlay, tree=tree))
    smaller = plan_given(fewer, planned.blue_names)
    parts = [
        measure([smaller], testbed.switches.link_counts(plan.job, plan.epoch + 1), chunks)
        for plan, outcome in zip(plans, outcomes, strict=True)
        if (chunks := len(outcome.destination.without))
    ]
    return add_measurements(parts) if parts else None


def go_on_without(
    tell: Tell, switches: SwitchControl, network: Network, plans: Sequence[JobPlan], worker: str
) -> tuple[JobPlan, ...]:
    """Put jobs under a newer epoch that leaves a worker out; their plans from now on.

    The entries of the epochs before stay until the next jobs are installed: chunks that are
    complete are answered under them.
    """
    rank = next(host.rank for host in network.workers if host.name == worker)
    others = tuple(
        replace(plan, epoch=plan.epoch + 1, absent=plan.absent | {rank}) for plan in plans
    )
    switches.install_beside(plans, network, others)
    for plan in others:
        exclude = Exclude(
            plan.job,
            plan.epoch,
            absent_ranks(network, plan),
            job_sources(network, plan),
            destination_bits(network, plan),
        )
        (term,) = tell([(network.destination.name, exclude)])
        if not isinstance(term, Term):
            raise RunFailedError(f"job {plan.job}: the destination answers {term!r}")
        left = [host.name for host in network.workers if host.rank not in plan.absent]
        tell([(name, Follow(plan.job, term)) for name in left])
    return others
