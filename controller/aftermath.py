"""What `--fail` asks for and what came of it, in values and in one line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controller.aftermath_text import is_on_tree, notes, what, why_cut_off
from controller.comeback import Comeback
from controller.errors import BadInputError
from controller.planning import Plan, plan, plan_given
from controller.rescue import Place, Rescue
from controller.running import Aftermath, Failure, Fate, JobState, RunOptions, Summed
from controller.testbed import FailurePoint
from controller.watchdog import Stuck
from topologies.errors import did_you_mean
from topologies.network import Network
from topologies.rerooting import find_link, link_name
from topologies.topology import Topology
from traffic.reports import DestinationReport, JobOutcome, Values
from traffic.workloads import exact_sums


def failure_point(planned: Plan, network: Network, options: RunOptions) -> FailurePoint | None:
    """When what fails, and the way out where the tree needs one; BadInputError names a part that
    there is not."""
    failure = options.failure
    if failure is None:
        return None
    topology = planned.topology
    total = options.jobs * options.chunks
    if failure.is_worker:
        if failure.part not in {host.name for host in network.workers}:
            raise BadInputError(f"--fail-worker {failure.part}: {_no_worker(network, failure)}")
        if failure.goes_on and len(network.workers) == 1:
            raise BadInputError("--on-worker-loss continue: nobody is left to go on")
        completed = int(failure.fraction * total)
        back = None
        if failure.returns is not None:
            back = Comeback(network, failure.part, int(failure.returns * total))
        return FailurePoint(failure.part, completed, goes_on=failure.goes_on, comeback=back)
    if is_destination(failure, network):
        return FailurePoint(failure.part, int(failure.fraction * total), resumes=True)
    if failure.part not in topology.switches and find_link(topology, failure.part) is None:
        raise BadInputError(f"--fail {failure.part}: {_no_part(network, failure)}")
    rescue = None
    if is_on_tree(topology, failure.part):
        rescue = Rescue(network, failure.part, _placing(planned), options.jobs)
    return FailurePoint(failure.part, int(failure.fraction * total), rescue)


def _no_worker(network: Network, failure: Failure) -> str:
    """Why there is nothing that `--fail-worker` names, and what may be meant."""
    first, last = network.workers[0].name, network.workers[-1].name
    topology, part = network.topology, failure.part
    there = f"there are {first} to {last}"
    if is_destination(failure, network) or part in topology.switches or find_link(topology, part):
        return f"that is {what(network, part)}; use --fail {part}@{failure.fraction:g}, or a worker"
    return f"{topology.name} has no such worker; {there}"


def _no_part(network: Network, failure: Failure) -> str:
    """Why there is nothing that `--fail` names, and what may be meant."""
    topology, part = network.topology, failure.part
    share = f"@{failure.fraction:g}"
    if part in {host.name for host in network.workers}:
        return f"that is a worker; use --fail-worker {part}{share}"
    for host in network.hosts:
        if part in (link_name(host.name, host.switch), link_name(host.switch, host.name)):
            kill = "--fail" if host.rank < 0 else "--fail-worker"
            return (
                "the link of a host cannot be cut, only one between two switches; kill the host "
                f"with {kill} {host.name}{share}"
            )
    known = [*topology.switches, network.destination.name]
    meant = did_you_mean(part, known + [link_name(*ends) for ends in topology.links])
    # Of all names there may be too many to compare with.
    meant = meant or did_you_mean(part, known)
    return (
        f"{topology.name} has no such switch, and no link of that name between two switches (A-B)"
        + (meant or f"; {network.destination.name} is where the sums are made")
    )


def is_destination(failure: Failure | None, network: Network) -> bool:
    """Whether it is the destination that fails: a switch of its name comes first."""
    return (
        failure is not None
        and failure.part == network.destination.name
        and failure.part not in network.topology.switches
    )


def aftermath(
    network: Network,
    failure: Failure,
    point: FailurePoint,
    outcomes: Sequence[JobOutcome],
    values: Sequence[Values],
    told: Sequence[Stuck],
) -> Aftermath:
    """What came of a failure."""
    rescue = point.rescue
    jobs = _states(network, point, outcomes, values)
    went_on = None if rescue is None else rescue.continuation
    cut_off: tuple[str, ...] = ()
    without = tuple(sorted({chunk for one in outcomes for chunk in one.destination.without}))
    if all(job.complete for job in jobs):
        fate = Fate.HARMLESS if went_on is None else Fate.WENT_ROUND
        if without:
            fate, cut_off = Fate.WENT_ON, (failure.part,)
        elif point.resumes:
            fate = Fate.RESUMED
    elif rescue is not None and rescue.cut_off:
        fate, cut_off = Fate.CUT_OFF, tuple(host.name for host in rescue.cut_off)
    else:
        fate = Fate.INCOMPLETE
    before = set(network.topology.overlay.names)
    detour = None if rescue is None else rescue.detour
    chunks = sum(sent.shape[1] for sent in values)
    done = f"{sum(job.completed for job in jobs)} of {chunks} chunks complete"
    done += ", each right" if all(job.right for job in jobs) else ", NOT all right"
    if failure.is_worker and sum(job.completed for job in jobs) == chunks:
        done += f", at the destination; {failure.part} had sent all that it had, and lacks answers"
    text = ""
    if fate in (Fate.CUT_OFF, Fate.INCOMPLETE):
        stuck = next(outcome.stuck for outcome in outcomes if not outcome.complete)
        parts = [f"{what(network, failure.part)} failed", stuck]
        if cut_off:
            parts[0] += f" and cuts off {', '.join(cut_off)}"
        parts += [one.text for one in told[-1:]]
        parts += [why_cut_off(network, failure.part)] if cut_off else []
        text = f"{'; '.join(filter(None, parts))} ({done})"
    first = next(iter(without), None) if went_on is None else went_on.first
    switches = (
        () if went_on is None else tuple(sorted(set(went_on.plan.topology.overlay.names) - before))
    )
    return Aftermath(
        part=failure.part,
        fate=fate,
        workers=cut_off,
        root=None if detour is None else detour.root,
        resumed_at=first,
        switches=switches,
        plan=None if went_on is None else went_on.plan,
        jobs=jobs,
        text=text,
        notes=() if text else notes(network, point, fate, jobs, first, switches, chunks),
    )


def _states(
    network: Network,
    point: FailurePoint,
    outcomes: Sequence[JobOutcome],
    values: Sequence[Values],
) -> tuple[JobState, ...]:
    """How far each job came."""
    back = () if point.comeback is None else point.comeback.firsts
    return tuple(
        JobState(
            job=i,
            completed=outcome.completed,
            complete=outcome.complete,
            right=outcome.is_right_so_far(exact_sums(sent, outcome.destination.without)),
            without=len(outcome.destination.without),
            sums=_summed(network, outcome.destination),
            back_at=back[i - 1] if back else None,
        )
        for i, (outcome, sent) in enumerate(zip(outcomes, values, strict=True), start=1)
    )


def _summed(network: Network, destination: DestinationReport) -> tuple[Summed, ...]:
    """Over which workers each complete chunk of a job is summed, those over all first."""
    ranges: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for chunk in np.flatnonzero(destination.known).tolist():
        runs = ranges.setdefault(tuple(sorted(destination.without.get(chunk, ()))), [])
        if runs and runs[-1][1] == chunk - 1:
            runs[-1] = (runs[-1][0], chunk)
        else:
            runs.append((chunk, chunk))
    return tuple(
        Summed(tuple(network.workers[rank].name for rank in ranks), tuple(ranges[ranks]))
        for ranks in sorted(ranges)
    )


def _placing(planned: Plan) -> Place:
    """How blue switches are chosen on another tree: as they were on the first."""

    def place(topology: Topology) -> Plan:
        if planned.strategy != "given":
            return plan(topology, planned.k, planned.strategy)
        tree, names = topology.overlay.tree, topology.overlay.names
        there = {name for v, name in enumerate(names) if tree.available[v]}
        return plan_given(topology, there.intersection(planned.blue_names))

    return place
