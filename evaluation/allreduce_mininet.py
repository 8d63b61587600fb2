"""AllReduce in real time over Mininet: a Communicator, and PyTorch's gloo over the same links."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from controller import targets
from controller.mininet_testbed import MininetTestbed
from controller.placement import STRATEGIES
from controller.ranks.launch import rank_commands
from controller.ranks.processes import RankProcesses
from controller.ranks.serving import serve
from p4src.builds import BUILDS, NARROW
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.marks import ALIAS, identity
from topologies.network import Network, wire

TOPOLOGY = "binary-tree:levels=2"
WORKERS_AT_A_LEAF = 2
RATE = 100_000_000
MIB = 1.0
WINDOW = 32
_ELEMENTS = int(MIB * (1 << 20)) // 4


@dataclass(frozen=True, slots=True)
class LinkBytes:
    """Bytes of frames on one link while the ranks ran, their start and end included."""

    lower: str
    upper: str
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class RealTime:
    """One method: the slowest rank's seconds, and every link's bytes."""

    method: str
    workers: int
    mib: float
    seconds: float
    links: tuple[LinkBytes, ...]


def why_not() -> str | None:
    """What this machine lacks, or None."""
    return targets.why_not(targets.SOFTSWITCH)


def measure_mininet() -> list[RealTime]:
    """All-blue and all-red by a Communicator, in messages of either size; gloo with PyTorch."""
    options = WorkloadOptions(workers=str(WORKERS_AT_A_LEAF), rates=None, seed=0)
    topology = parse(TOPOLOGY, options)
    found = []
    methods = [
        (strategy, "bluetree", build)
        for build in BUILDS.values()
        for strategy in ("all-blue", "all-red")
    ]
    if importlib.util.find_spec("torch") is None:
        print("gloo: torch is not installed, so it is not measured", file=sys.stderr)
    else:
        methods.append(("all-red", "gloo", NARROW))
    for strategy, through, build in methods:
        name = "gloo" if through == "gloo" else f"Communicator, {build.lanes} lanes, {strategy}"
        print(f"Mininet, {name}", file=sys.stderr)
        network = wire(topology, build=build)
        with MininetTestbed(network, targets.SOFTSWITCH, Conditions(base=RATE)) as testbed:
            found.append(_measure(network, testbed, name, strategy, through))
    return found


def _measure(
    network: Network, testbed: MininetTestbed, name: str, strategy: str, through: str
) -> RealTime:
    tree = network.topology.overlay.tree
    plans = testbed.switches.install([STRATEGIES[strategy](tree, tree.n).blue], WINDOW)
    interfaces = _interfaces(testbed)
    words = [sys.executable, "-m", "evaluation.allreduce_rank"]
    words += ["--through", through, "--elements", str(_ELEMENTS)]
    with (
        tempfile.TemporaryDirectory() as folder,
        (Path(folder) / "said").open("w+") as said,
        serve(testbed, plans, Path(folder) / "network"),
    ):
        commands = rank_commands(network, testbed, words, Path(folder) / "network")
        before = _counted(interfaces)
        with RankProcesses(commands, said) as ranks:
            ranks.wait()
        after = _counted(interfaces)
        said.seek(0)
        seconds = [json.loads(line)["seconds"] for line in said if line.startswith("{")]
    carried = {at: tuple(b - a for a, b in zip(before[at], after[at], strict=True)) for at in after}
    return RealTime(name, len(network.workers), MIB, max(seconds), _links(network, carried))


def _links(
    network: Network, carried: Mapping[tuple[int, int], Sequence[int]]
) -> tuple[LinkBytes, ...]:
    """Every link, seen from the lower switch's interface, or the switch's towards a host."""
    links = []
    for link in network.links:
        sent, received = carried[network.device_id[link.lower], link.lower_port]
        links.append(LinkBytes(link.lower, link.upper, sent, received))
    for host in network.workers:
        sent, received = carried[network.device_id[host.switch], host.port]
        links.append(LinkBytes(host.name, host.switch, received, sent))
    root = network.destination
    sent, received = carried[network.device_id[root.switch], root.port]
    links.append(LinkBytes(root.switch, root.name, sent, received))
    return tuple(links)


def _interfaces(testbed: MininetTestbed) -> dict[tuple[int, int], Path]:
    """Where the kernel counts, by device id and port of the switches of this network."""
    process = next(iter(testbed.running.namespaces().values()))
    status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    owner = f"{ALIAS}:{identity(int(status[1]))}"
    found = {}
    for alias in Path("/sys/class/net").glob("*/ifalias"):
        if alias.read_text().strip() == owner:
            # <tag of four>s<device>-<port>
            kind, name = alias.parent.name[4], alias.parent.name[5:]
            device, _, port = name.partition("-")
            if kind == "s":
                found[int(device), int(port)] = alias.parent / "statistics"
    return found


def _counted(interfaces: Mapping[tuple[int, int], Path]) -> dict[tuple[int, int], tuple[int, int]]:
    """Bytes sent and received so far."""
    return {
        at: (int((path / "tx_bytes").read_text()), int((path / "rx_bytes").read_text()))
        for at, path in interfaces.items()
    }
