"""What the machines of a job are told, for any testbed. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.compile import JobPlan, destination_bits, destination_sources
from controller.placement import loads
from topologies.network import Host, Network, ip_text, mac_text
from traffic.collectives.calls import Call
from traffic.collectives.calls import Kind as CallKind
from traffic.commands import AttachWorker, Command
from traffic.destination_config import DestinationConfig, Recipient
from traffic.endpoint import Op
from traffic.message import (
    ETHERNET_BYTES,
    HEADER_BYTES,
    IPV4_BYTES,
    LANE_BYTES,
    UDP_BYTES,
    group_ip,
    group_mac,
)
from traffic.reports import Values
from traffic.requests import RequestConfig
from traffic.stream import Stream
from traffic.worker_config import WorkerConfig

_HEADERS = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + HEADER_BYTES
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient a job's machines are, in nanoseconds.

    Attributes:
        timeout: what a worker waits, while others are answered, before it sends a chunk again.
        max_timeout: what it waits at most.
        max_tries: timeouts of a chunk before a worker gives up.
        quiet: how long no chunk of a job may become complete, at first; by default `timeout`.
        round_trip: what a message to the destination and its answer take at least; by default a
            sixteenth of `timeout`.
    """

    timeout: int
    max_timeout: int
    max_tries: int
    quiet: int = 0
    round_trip: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "quiet", self.quiet or self.timeout)
        object.__setattr__(self, "round_trip", self.round_trip or max(1, self.timeout // 16))

    @property
    def answer_interval(self) -> int:
        """How long the destination keeps from answering a chunk again.

        An answer goes to all workers. Those that miss one ask again at much the same time, so that
        one answer serves them all; it must be over before they ask the next time.
        """
        return self.round_trip

    @property
    def ask_timeout(self) -> int:
        """The least time between two attempts to have a loss made good."""
        return 2 * self.round_trip


def members(network: Network, plan: JobPlan) -> tuple[Host, ...]:
    """The hosts whose workers take part in a job, in the order of their ranks in it."""
    if plan.members is None:
        return network.workers
    return tuple(host for host in network.workers if host.rank in plan.members)


def job_sources(network: Network, plan: JobPlan) -> Mapping[int, frozenset[int]]:
    """What the destination may hear under a plan: for every source, ranks within the job."""
    rank = {host.rank: i for i, host in enumerate(members(network, plan))}
    heard = destination_sources(network, plan.blue, plan.present(network))
    return {source: frozenset(rank[at] for at in ranks) for source, ranks in heard.items()}


def absent_ranks(network: Network, plan: JobPlan) -> frozenset[int]:
    """Ranks within the job of the workers that a plan leaves out."""
    return frozenset(i for i, host in enumerate(members(network, plan)) if host.rank in plan.absent)


def worker_config(
    network: Network, plan: JobPlan, host: Host, op: Op, timing: Timing, first_chunk: int
) -> WorkerConfig:
    """What the worker on `host`, which takes part, is told of a job."""
    taking_part = range(len(network.workers)) if plan.members is None else sorted(plan.members)
    return WorkerConfig(
        name=host.name,
        job=plan.job,
        epoch=plan.epoch,
        source=host.source,
        rank=taking_part.index(host.rank),
        workers=len(taking_part),
        mac=mac_text(host.mac),
        ip=ip_text(host.ip),
        udp_port=host.udp_port,
        gateway_mac=mac_text(network.switch_mac(host.switch)),
        destination_ip=ip_text(network.destination.ip),
        group_ip=group_ip(plan.job),
        window=plan.window,
        first_chunk=first_chunk,
        op=op,
        initial_timeout=max(timing.quiet, timing.timeout // 2),
        min_timeout=max(timing.quiet, timing.timeout // 2),
        max_timeout=timing.max_timeout,
        max_tries=timing.max_tries,
        patience=timing.timeout,
        ask_timeout=timing.ask_timeout,
        absent=absent_ranks(network, plan),
    )


def attach_workers(
    network: Network,
    plan: JobPlan,
    op: Op,
    timing: Timing,
    values: Stream | Sequence[Values],
    first_chunk: int,
    ranks: Collection[int] | None = None,
) -> list[tuple[str, Command]]:
    """What gives a job to hosts of its workers, by rank in the network; None is all of the plan.

    `values`: an endless tensor, or those of each worker by rank in the job.
    """
    commands: list[tuple[str, Command]] = []
    for rank, host in enumerate(members(network, plan)):
        if host.rank in plan.absent if ranks is None else host.rank not in ranks:
            continue
        told = worker_config(network, plan, host, op, timing, first_chunk)
        own = values if isinstance(values, Stream) else values[rank]
        commands.append((host.name, AttachWorker(told, own)))
    return commands


def call_worker(
    network: Network,
    plan: JobPlan,
    host: Host,
    call: Call,
    op: Op,
    timing: Timing,
    first_chunk: int,
) -> WorkerConfig:
    """What the worker on `host` is told of a collective call; `op` says what it waits for.

    The sums of a Reduce go to its root alone, so no switch on the way can give them again: what the
    root repeats passes them all.
    """
    config = worker_config(network, plan, host, op, timing, first_chunk)
    is_root = call.kind is CallKind.REDUCE and op is Op.ALLREDUCE
    return replace(config, direct_after=0) if is_root else config


def destination_config(
    network: Network,
    plan: JobPlan,
    op: Op,
    timing: Timing,
    chunks: int,
    first_chunk: int,
    stream: Stream | None = None,
) -> DestinationConfig:
    """What the destination is told of a job; with a stream, `chunks` is 0."""
    host = network.destination
    return DestinationConfig(
        job=plan.job,
        epoch=plan.epoch,
        mac=mac_text(host.mac),
        ip=ip_text(host.ip),
        group_mac=group_mac(group_ip(plan.job)),
        group_ip=group_ip(plan.job),
        op=op,
        chunks=chunks,
        first_chunk=first_chunk,
        answer_interval=timing.answer_interval,
        sources=job_sources(network, plan),
        workers=[host.name for host in members(network, plan)],
        lanes=network.build.lanes,
        window=plan.window,
        stream=stream,
        asked=destination_bits(network, plan),
        absent=absent_ranks(network, plan),
        requests=RequestConfig(
            quiet=timing.quiet,
            timeout=timing.ask_timeout,
            max_timeout=timing.max_timeout,
            direct_time=2 * timing.timeout,
            max_tries=timing.max_tries,
        ),
    )


def call_destination(
    network: Network, plan: JobPlan, call: Call, timing: Timing, chunks: int, first_chunk: int
) -> DestinationConfig:
    """What the destination is told of a collective call: a Reduce's sum goes on to its root."""
    answers_all = call.kind in (CallKind.ALLREDUCE, CallKind.BROADCAST)
    op = Op.ALLREDUCE if answers_all else Op.REDUCE
    config = destination_config(network, plan, op, timing, chunks, first_chunk)
    if call.kind is not CallKind.REDUCE:
        return config
    root = members(network, plan)[call.root]
    gateway = mac_text(network.switch_mac(network.destination.switch))
    return replace(config, recipient=Recipient(gateway, ip_text(root.ip), root.udp_port))


def window_time(
    network: Network,
    rates: Mapping[str, int],
    plans: Sequence[JobPlan],
    *,
    aggregated: bool = False,
) -> int:
    """Nanoseconds in which the busiest link carries one window of every worker.

    `rates` are bits a second of every overlay switch's link upward. Unaggregated is what
    repetitions can come to, whatever is blue: what is marked direct or late passes blue switches,
    and each repetition of a complete chunk brings its sum again. Were timeouts shorter, repetitions
    would outrun the link and queue up without end.
    """
    tree, names = network.topology.overlay.tree, network.topology.overlay.names
    carried = [
        loads(tree, plan.blue).messages if aggregated else tree.subtree_loads() for plan in plans
    ]
    return max(
        sum(plan.window * messages[v] for plan, messages in zip(plans, carried, strict=True))
        * _frame_bits(network)
        * _SECOND_NS
        // rates[name]
        for v, name in enumerate(names)
    )


def round_trip(network: Network, rates: Mapping[str, int], delay: int) -> int:
    """Nanoseconds from the farthest worker to the destination and back over idle links.

    `delay` is that of a link, beside the time that a frame takes at its rate.
    """
    links = max(network.topology.overlay.tree.depths()) + 2
    return 2 * links * (delay + _frame_bits(network) * _SECOND_NS // min(rates.values()))


def _frame_bits(network: Network) -> int:
    return 8 * (_HEADERS + network.build.lanes * LANE_BYTES)
