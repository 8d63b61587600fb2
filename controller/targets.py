"""Where the switches of a run are: the fabric, or Mininet with softswitch or bmv2."""

from __future__ import annotations

import os
import zlib
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from controller import capacity, installed
from controller.errors import BadInputError, EnvironmentLacksError
from controller.placement import Tree
from controller.running import RunOptions
from topologies import Topology
from topologies.fabric.build import MAX_SWITCHES, Conditions
from topologies.network import Network
from topologies.shaping import ShapingError, check_rates

if TYPE_CHECKING:
    from controller.fabric_testbed import FabricTestbed
    from controller.mininet_testbed import MininetTestbed

FABRIC, SOFTSWITCH, BMV2, AUTO = "fabric", "softswitch", "bmv2", "auto"
TARGETS_OVER_MININET = (SOFTSWITCH, BMV2)
AUTO_PROCESSES = 64
"""Larger networks are only brought up in Mininet when asked for by name."""
QUEUE_FRAMES = 64
"""What a port of bmv2 holds before it drops, by default."""
FABRIC_WINDOW = 32


def why_not(target: str) -> str | None:
    """Why a target does not work on this machine, or None if it does."""
    if target == FABRIC:
        return None
    if os.geteuid() != 0:
        return (
            f"--target {target}: needs root for network namespaces; --target fabric works without"
        )
    return installed.why_not(target)


def choose(requested: str, topology: Topology, options: RunOptions) -> str:
    """The target for a run.

    "auto" takes bmv2 where it is installed, the user is root, and the run is one for it: at most
    AUTO_PROCESSES switches and hosts, one job, links left as they are. Else it takes the fabric.
    Raises EnvironmentLacksError or BadInputError where the target that was asked for cannot do it.
    """
    if requested == AUTO:
        fits = _processes(topology) <= AUTO_PROCESSES and _is_plain(options)
        requested = BMV2 if fits and why_not(BMV2) is None else FABRIC
    if requested == FABRIC:
        _check_size(topology, len(topology.switches), "switches", MAX_SWITCHES, FABRIC)
        return FABRIC
    reason = why_not(requested)
    if reason is not None:
        raise EnvironmentLacksError(reason)
    only = _fabric_only(options)
    if only:
        raise BadInputError(f"{only}: only the fabric does this; use --target fabric")
    if options.link_rate is not None:
        try:
            check_rates(topology, options.link_rate)
        except ShapingError as error:
            raise BadInputError(f"--link-rate: {error}") from None
    _check_processes(topology, requested)
    return requested


def bring_up(
    network: Network, target: str, options: RunOptions
) -> AbstractContextManager[FabricTestbed | MininetTestbed]:
    """The testbed of a target, not entered yet."""
    failure = options.failure
    records = failure is not None and failure.part == network.destination.name
    # Loaded here, since most commands ask for a target's name only.
    if target == FABRIC:
        from controller.fabric_testbed import FabricTestbed

        epoch = _epoch_of(network, options)
        return FabricTestbed(network, _conditions(options), options.pcap, epoch, records=records)
    from controller.mininet_testbed import MininetTestbed

    return MininetTestbed(network, target, _conditions(options), records=records)


def _epoch_of(network: Network, options: RunOptions) -> int:
    """What the epochs of a run on the fabric begin with.

    Runs that differ differ in it, and the same run is the same to the bit: so not from the clock.
    """
    told = f"{network.topology.name} {replace(options, pcap=None)!r}"
    return zlib.crc32(told.encode()) >> 1


def _conditions(options: RunOptions) -> Conditions:
    return Conditions(
        options.loss, options.duplicate, options.reorder, options.seed, options.link_rate
    )


def window(target: str, options: RunOptions, tree: Tree) -> int:
    """Chunks in flight: as asked, else as many as the target takes without loss.

    A port of bmv2 drops what its queue does not hold, so all messages of the windows of all jobs,
    none of them aggregated, must fit into one.
    """
    if options.window is not None:
        return options.window
    if target == FABRIC:
        return FABRIC_WINDOW
    fitting = max(1, QUEUE_FRAMES // max(1, options.jobs * sum(tree.load)))
    return min(FABRIC_WINDOW, 1 << (fitting.bit_length() - 1))


def _processes(topology: Topology) -> int:
    return len(topology.switches) + sum(topology.overlay.tree.load) + 1


def _fabric_only(options: RunOptions) -> str:
    """The first option that only the fabric serves, "" if there is none."""
    asked = {
        "--pcap": options.pcap is not None,
    }
    return next((name for name, is_asked in asked.items() if is_asked), "")


def _is_plain(options: RunOptions) -> bool:
    """Whether a run does nothing to links and switches, and has one job."""
    changes = (options.loss, options.duplicate, options.reorder, options.link_rate, options.failure)
    return options.jobs == 1 and not any(changes) and not _fabric_only(options)


def _check_processes(topology: Topology, target: str) -> None:
    switches, hosts = len(topology.switches), sum(topology.overlay.tree.load) + 1
    lacks = capacity.shortfall(capacity.needs(target, switches, hosts), capacity.free())
    if lacks is not None:
        raise BadInputError(
            f"{topology.name}: {switches} switches and {hosts} hosts as processes need {lacks}; "
            f"run a smaller network than this on --target {target}, or take --target fabric"
        )


def _check_size(topology: Topology, size: int, what: str, most: int, target: str) -> None:
    if size > most:
        raise BadInputError(
            f"{topology.name}: {size} {what}; --target {target} brings up at most {most} here, so "
            "run a smaller network (planning has no such limit)"
        )
