"""From a placement to what every switch must hold: `SwitchProgram`s. Pure.

A job is one Reduce, repeated for many chunks, over the overlay tree. For each job the overlay's
switches get

    registered_sources   which sources each port may speak for
    blue_sources         at blue switches: the sources to sum, and the slots to sum them in
    blue_jobs            at blue switches: the same of the whole job, for what comes down
    branches             the sources behind each port, so that requests go where they concern
    upstream             the port to the parent; its counters are the measured load of the link
    downstream, group    the way of results down to the workers
    hosts                at host ports: the address of the worker's own socket

and every switch, overlay or not, gets the routes of ordinary IPv4 traffic.

A job that is being reallocated has two plans, of two epochs. What depends on the colours has the
epoch in its key, so that the entries of both stand side by side; the rest is there once. So does a
job that goes on without some of its workers: the new epoch's entries are made as if these were not
there, and the rest, which does not say what is summed, stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from controller.program import MulticastGroup, SwitchProgram, TableEntry
from controller.routes import ipv4_routes
from p4src.constants import JOBS, SLOTS, SOURCES
from topologies.network import Host, Network


class CompileError(ValueError):
    """A placement does not fit the program; the text names the switch and the remedy."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One job's allocation.

    Attributes:
        job: 1 .. JOBS; also the job's multicast group id.
        epoch: generation of the allocation, from 1; newer allocations are larger.
        blue: tree indices of the blue switches.
        slot_base: first slot of the job at every blue switch.
        window: slots of the job, a power of two; at most so many chunks are in flight.
        members: ranks of the workers that take part; None is all of them.
        absent: ranks of those among them that this epoch leaves out.
    """

    job: int
    epoch: int
    blue: frozenset[int]
    slot_base: int
    window: int
    members: frozenset[int] | None = None
    absent: frozenset[int] = frozenset()

    def present(self, network: Network) -> frozenset[int] | None:
        """Ranks of the workers whose values are summed; None is all of the network's."""
        if not self.absent:
            return self.members
        members = range(len(network.workers)) if self.members is None else self.members
        return frozenset(members) - self.absent


@dataclass(frozen=True, slots=True)
class SourceSet:
    """A source that a switch or the destination hears, and the ranks whose values it carries."""

    source: int
    port: int
    ranks: tuple[int, ...]


def share_slots(
    blue_sets: Sequence[frozenset[int]], epoch: int, window: int
) -> tuple[JobPlan, ...]:
    """Number the jobs from 1 and give each a window of slots of its own.

    Raises CompileError where the windows of all jobs exceed the slots of the program.
    """
    if window < 1 or window & (window - 1):
        raise CompileError(f"window {window}: choose a power of two, such as 64")
    if len(blue_sets) > JOBS:
        raise CompileError(f"{len(blue_sets)} jobs: the program was compiled for {JOBS}")
    if len(blue_sets) * window > SLOTS:
        raise CompileError(
            f"{len(blue_sets)} jobs of window {window} need {len(blue_sets) * window} slots and a "
            f"switch has {SLOTS}: use fewer jobs or a smaller window"
        )
    return tuple(
        JobPlan(job=i + 1, epoch=epoch, blue=blue, slot_base=i * window, window=window)
        for i, blue in enumerate(blue_sets)
    )


def compile_programs(network: Network, jobs: Iterable[JobPlan]) -> tuple[SwitchProgram, ...]:
    """Return the program of every physical switch, in device order.

    Plans of one job differ in their epoch, and may in their blue switches and in whom they leave
    out, in nothing else.
    Raises CompileError where they do, and where a blue switch would sum more sources than the
    program has bits for.
    """
    entries: dict[str, list[TableEntry]] = {name: [] for name in network.topology.switches}
    groups: dict[str, list[MulticastGroup]] = {name: [] for name in network.topology.switches}
    for name, routes in ipv4_routes(network).items():
        entries[name].extend(routes)
    first: dict[int, JobPlan] = {}
    for plan in jobs:
        if _check_epochs(plan, first.setdefault(plan.job, plan)):
            # Red everywhere: who belongs to the job, not what is summed where.
            belong = heard_sources(network, frozenset(), plan.members)
            for v, name in enumerate(network.topology.overlay.names):
                if belong[v]:
                    children = [c for c in network.topology.overlay.tree.children[v] if belong[c]]
                    entries[name].extend(_membership(network, plan, v, children))
                    groups[name].append(_group(network, plan, v, children))
        for name, of_epoch in epoch_entries(network, plan).items():
            entries[name].extend(of_epoch)
    return tuple(
        SwitchProgram(name, tuple(entries[name]), tuple(groups[name]))
        for name in network.topology.switches
    )


def merge_programs(*sets: Iterable[SwitchProgram]) -> tuple[SwitchProgram, ...]:
    """Programs of different jobs on the same switches, together; what is in several counts once.

    For jobs with different roots: each is compiled for the network as its root has it.
    """
    entries: dict[str, dict[TableEntry, None]] = {}
    groups: dict[str, dict[MulticastGroup, None]] = {}
    for program in (program for programs in sets for program in programs):
        entries.setdefault(program.name, {}).update(dict.fromkeys(program.entries))
        groups.setdefault(program.name, {}).update(dict.fromkeys(program.groups))
    return tuple(SwitchProgram(name, tuple(entries[name]), tuple(groups[name])) for name in entries)


def epoch_entries(network: Network, plan: JobPlan) -> Mapping[str, tuple[TableEntry, ...]]:
    """The entries of a plan's epoch alone, by switch: what a reallocation adds, or removes.

    Raises CompileError where a blue switch would sum more sources than the program has bits for.
    """
    heard = heard_sources(network, plan.blue, plan.present(network))
    bits = request_bits(network, plan.blue, heard)
    return {
        name: tuple(_of_epoch(network, plan, v, heard[v], bits[v]))
        for v, name in enumerate(network.topology.overlay.names)
        if heard[v]
    }


def heard_sources(
    network: Network, blue: frozenset[int], members: frozenset[int] | None = None
) -> tuple[tuple[SourceSet, ...], ...]:
    """For each overlay switch, the sources that reach it, in order of source id.

    `members` are the ranks of the workers that take part; None is all of them.
    Raises CompileError naming a blue switch that hears more than the program can sum.
    """
    tree = network.topology.overlay.tree
    heard: list[tuple[SourceSet, ...]] = [()] * tree.n
    for v in tree.order:
        sources = [
            SourceSet(host.source, host.port, (host.rank,)) for host in _own(network, v, members)
        ]
        for child in tree.children[v]:
            sources.extend(
                SourceSet(sent.source, network.child_port[child], sent.ranks)
                for sent in sent_sources(network, blue, child, heard[child])
            )
        if v in blue and len(sources) > SOURCES:
            raise CompileError(
                f"{network.topology.overlay.names[v]}: would sum {len(sources)} sources and the "
                f"program was compiled for {SOURCES}; make a switch below it blue, or compile with "
                "a larger SOURCES"
            )
        heard[v] = tuple(sources)
    return tuple(heard)


def sent_sources(
    network: Network, blue: frozenset[int], v: int, heard: tuple[SourceSet, ...]
) -> tuple[SourceSet, ...]:
    """The sources that switch `v` sends upward, given those that it hears."""
    if v not in blue or not heard:
        return heard
    ranks = tuple(sorted(rank for source in heard for rank in source.ranks))
    return (SourceSet(network.interval[v][0], network.parent_port[v], ranks),)


def request_bits(
    network: Network, blue: frozenset[int], heard: Sequence[tuple[SourceSet, ...]]
) -> tuple[Mapping[int, int], ...]:
    """For each overlay switch, the bit that each source it hears has in a request from above.

    Sources are numbered by whoever sums them: the switch itself if it is blue, else the nearest
    blue switch above, else the destination, which hears what the root does if that is red.
    """
    tree = network.topology.overlay.tree
    bits: list[Mapping[int, int]] = [{}] * tree.n
    for v in reversed(tree.order):
        if v == 0 or v in blue:
            bits[v] = {source.source: i for i, source in enumerate(heard[v])}
        else:
            bits[v] = bits[tree.parent[v]]
    return tuple(bits)


def destination_bits(network: Network, plan: JobPlan) -> Mapping[int, int]:
    """The bit in a request of each source that the root sends, where it fits."""
    heard = heard_sources(network, plan.blue, plan.present(network))[0]
    sent = sent_sources(network, plan.blue, 0, heard)
    return {source.source: i for i, source in enumerate(sent) if i < network.build.set_bits}


def destination_sources(
    network: Network, blue: frozenset[int], members: frozenset[int] | None = None
) -> Mapping[int, frozenset[int]]:
    """Every source that the destination may hear, with the ranks it stands for.

    Beside what the placement sends, this holds each worker itself (a message marked direct or late)
    and each blue switch (where a switch above it passes a late sum on).
    """
    heard = heard_sources(network, blue, members)
    sources = {
        host.source: frozenset((host.rank,))
        for host in network.workers
        if members is None or host.rank in members
    }
    for v in sorted(blue):
        for source in sent_sources(network, blue, v, heard[v]):
            sources[source.source] = frozenset(source.ranks)
    return sources


def _check_epochs(plan: JobPlan, first: JobPlan) -> bool:
    """Whether the plan is the first of its job; CompileError where it contradicts the first."""
    if plan is first:
        return True
    same = replace(first, epoch=plan.epoch, blue=plan.blue, absent=plan.absent)
    if plan != same or plan.epoch == first.epoch:
        raise CompileError(
            f"job {plan.job}: two plans of epochs {first.epoch} and {plan.epoch} differ in more "
            "than epoch, blue switches and absent workers: stop the job and start it anew"
        )
    return False


def _own(network: Network, v: int, members: frozenset[int] | None) -> list[Host]:
    """The workers at switch `v` that take part."""
    hosts = network.workers_at[network.topology.overlay.names[v]]
    return [host for host in hosts if members is None or host.rank in members]


def _membership(
    network: Network, plan: JobPlan, v: int, children: Sequence[int]
) -> Iterator[TableEntry]:
    """What switch `v` needs to carry the job, whatever its colour; `children` have workers."""
    job = {"job": plan.job}
    for host in _own(network, v, plan.members):
        port = {"ingress_port": host.port}
        interval = {"lowest": host.source, "highest": host.source}
        yield TableEntry.of("registered_sources", job | port, "admit", interval)
        yield TableEntry.of(
            "hosts",
            job | {"egress_port": host.port},
            "to_host",
            {"mac": host.mac, "addr": host.ip, "udp_port": host.udp_port},
        )
    for child in children:
        lowest, highest = network.interval[child]
        yield TableEntry.of(
            "registered_sources",
            job | {"ingress_port": network.child_port[child]},
            "admit",
            {"lowest": lowest, "highest": highest},
        )
    tree = network.topology.overlay.tree
    above = network.destination.mac
    if v:
        above = network.switch_mac(network.topology.overlay.names[tree.parent[v]])
    for phase, resent in product((0, 1), (0, 1)):
        yield TableEntry.of(
            "upstream",
            job | {"phase": phase, "resent": resent},
            "to_parent",
            {"port": network.parent_port[v], "mac": above},
        )
    yield TableEntry.of(
        "downstream",
        job | {"ingress_port": network.parent_port[v]},
        "fan_out",
        {"group": plan.job},
    )


def _of_epoch(
    network: Network,
    plan: JobPlan,
    v: int,
    heard: tuple[SourceSet, ...],
    bits: Mapping[int, int],
) -> Iterator[TableEntry]:
    """What depends on the colours, and has the epoch in its key."""
    if v in plan.blue:
        yield from _blue_sources(network, plan, v, heard)
        yield _blue_job(network, plan, v, heard)
    yield from _branches(plan, heard, bits, network.build.set_bits)


def _blue_sources(
    network: Network, plan: JobPlan, v: int, heard: tuple[SourceSet, ...]
) -> Iterator[TableEntry]:
    for i, source in enumerate(heard):
        yield TableEntry.of(
            "blue_sources",
            {
                "ingress_port": source.port,
                "job": plan.job,
                "epoch": plan.epoch,
                "source": source.source,
            },
            "join",
            {
                "source_bit": 1 << i,
                "all_sources": (1 << len(heard)) - 1,
                "weight": len(source.ranks),
                "slot_base": plan.slot_base,
                "slot_mask": plan.window - 1,
                "own_source": network.interval[v][0],
            },
        )


def _blue_job(network: Network, plan: JobPlan, v: int, heard: tuple[SourceSet, ...]) -> TableEntry:
    return TableEntry.of(
        "blue_jobs",
        {"job": plan.job, "epoch": plan.epoch},
        "serve",
        {
            "all_sources": (1 << len(heard)) - 1,
            "slot_base": plan.slot_base,
            "slot_mask": plan.window - 1,
            "own_source": network.interval[v][0],
        },
    )


def _branches(
    plan: JobPlan, heard: tuple[SourceSet, ...], bits: Mapping[int, int], set_bits: int
) -> Iterator[TableEntry]:
    """The sources behind each port; a port with one that does not fit a request is always asked."""
    behind: dict[int, int] = {}
    for source in heard:
        behind[source.port] = behind.get(source.port, 0) | 1 << bits[source.source]
    for port, sources in behind.items():
        if sources < 1 << set_bits:
            yield TableEntry.of(
                "branches",
                {"egress_port": port, "job": plan.job, "epoch": plan.epoch},
                "lead_to",
                {"sources": sources},
            )


def _group(network: Network, plan: JobPlan, v: int, children: Sequence[int]) -> MulticastGroup:
    ports = [host.port for host in _own(network, v, plan.members)]
    ports += [network.child_port[child] for child in children]
    return MulticastGroup(plan.job, tuple((port, 1) for port in ports))
