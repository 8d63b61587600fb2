"""What came of a failure, in words: why a run failed, or one line or more of how it did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.running import Fate, JobState
from controller.testbed import FailurePoint
from topologies.network import Network
from topologies.rerooting import find_link, link_name, overlay_from
from topologies.topology import Topology

_SHOWN = 12
"""How many names a line lists."""


def is_on_tree(topology: Topology, part: str) -> bool:
    """Whether a switch, or a link, is one of the overlay."""
    return part in topology.overlay.names or _below(topology, part) is not None


def what(network: Network, part: str) -> str:
    """A part of a network with what it is, such as "switch core0"."""
    if part in {host.name for host in network.workers}:
        return f"worker {part}"
    if part == network.destination.name and part not in network.topology.switches:
        return "the destination"
    return f"switch {part}" if part in network.topology.switches else f"link {part}"


def why_cut_off(network: Network, part: str) -> str:
    """Why no other way leads to workers, and what helps."""
    destinations = (network.destination, *network.spares)
    if {host.switch for host in destinations} == {part}:
        return "the destination is attached to it alone, so attach another with --root SWITCH"
    if any(host.switch == part for host in network.workers):
        return "they are attached to it alone, so give them another switch (--workers PATH)"
    # Where the workers still reach each other, it is the destination that is cut off.
    at = network.workers[0].switch
    reached = overlay_from(network.topology, at, {part}).names
    if all(host.switch in reached for host in network.workers):
        return f"the destination has no other way, so attach another with --root {at}"
    return (
        "no other way leads to them, from any root: run on a network that has one, such as this "
        f"one with a further link round {part}"
    )


def notes(
    network: Network,
    point: FailurePoint,
    fate: Fate,
    jobs: Sequence[JobState],
    first: int | None,
    switches: Sequence[str],
    chunks: int,
) -> tuple[str, ...]:
    """What came of a failure that ended no run.

    `first` is the first chunk of the other tree, `switches` those that are new in it; `chunks` are
    those of all jobs.
    """
    if fate is Fate.HARMLESS:
        return (_harmless(network, point, chunks),)
    if fate is Fate.WENT_ON:
        return tuple(_went_on(point, jobs, chunks))
    if fate is Fate.RESUMED:
        return ("the destination died: it started anew, and went on with what it had recorded",)
    if fate is Fate.WENT_ROUND:
        more = f", ... ({len(switches) - _SHOWN} more)" if len(switches) > _SHOWN else ""
        new = ", ".join(switches[:_SHOWN]) + more or "none"
        return (
            f"{point.part} failed: went on at chunk {first} over another tree, with {new} new in "
            "it",
        )
    return ()


def _harmless(network: Network, point: FailurePoint, chunks: int) -> str:
    worker = point.part in {host.name for host in network.workers}
    if not worker and not is_on_tree(network.topology, point.part):
        return f"{point.part} failed and disturbed nobody: it is outside the tree"
    if not worker and not _is_used(network, point.part):
        return f"{point.part} failed and disturbed nobody: no worker is below it"
    ended = "died" if worker else "failed"
    line = (
        f"{point.part} {ended} and disturbed nobody: {_all_sent(chunks)} by then; "
        f"{_sooner(point.completed, chunks)}"
    )
    return line if point.comeback is None else f"{line}; it did not come back either"


def _went_on(point: FailurePoint, jobs: Sequence[JobState], chunks: int) -> Iterator[str]:
    """A line for all jobs together and, where there are several, one for each."""
    without = sum(job.without for job in jobs)
    line = f"{point.part} died: {without} of {chunks} chunks are summed without it"
    ways = [_way(job) for job in jobs]
    back = any(job.back_at is not None for job in jobs)
    if len(jobs) == 1:
        line += f", {ways[0]}"
    elif back:
        line += ", and it came back"
    if point.comeback is not None and not back:
        line += (
            f"; it did not come back: {_all_sent(chunks)} by then; "
            f"{_sooner(point.comeback.completed, chunks)}"
        )
    yield line + (
        "; links are measured from there on" if back else "; links are measured over these"
    )
    if len(jobs) > 1:
        yield from (f"job {job.job}: {way}" for job, way in zip(jobs, ways, strict=True))


def _way(job: JobState) -> str:
    """From which chunk on a job is without the worker, and from which it has it again."""
    runs = [run for summed in job.sums if summed.left_out for run in summed.chunks]
    if not runs:
        return "none is without it"
    since = f"from chunk {min(first for first, _ in runs)} on"
    if job.back_at is None:
        return since
    return f"{since}; it came back at chunk {job.back_at}"


def _all_sent(chunks: int) -> str:
    return f"all {chunks} chunks had been sent" if chunks > 1 else "the one chunk had been sent"


def _sooner(completed: int, chunks: int) -> str:
    """What makes something happen while there is something to disturb."""
    if completed < chunks:
        return "use more --chunks or a smaller --window"
    return "use a smaller share than 1"


def _below(topology: Topology, part: str) -> int | None:
    """The switch of the overlay, by its index, whose link to its parent is called so."""
    names, parent = topology.overlay.names, topology.overlay.tree.parent
    ends = find_link(topology, part)
    if ends is None:
        return None
    called = {link_name(*ends), link_name(*ends[::-1])}
    links = ((v, link_name(names[v], names[above])) for v, above in enumerate(parent) if above >= 0)
    return next((v for v, name in links if name in called), None)


def _is_used(network: Network, part: str) -> bool:
    """Whether some worker's way to the destination leads over a part of the overlay."""
    names = network.topology.overlay.names
    v = names.index(part) if part in names else _below(network.topology, part)
    if v is None:
        return False
    low, high = network.interval[v]
    return any(low <= host.source <= high for host in network.workers)
