"""A network in Mininet: real veth links, one process a switch, one a host. As root.

This process is the only one that imports mininet. It runs beside the controller, because Mininet
forks for every command and the controller holds gRPC channels, which do not survive a fork. It is
told what to bring up over a Unix socket, and takes everything down when that connection ends,
however it ends, the run's folder with its sockets and logs included:

    ("up", Network, SwitchPlan, HostPlan, LinkPlan)
                answered ("up", StartTimes) or ("failed", text)
    ("dead",)   answered ("dead", logs of processes that have ended unasked)
    ("pids",)   answered ("pids", process ids by the name of switch or host)
    ("namespaces",)
                answered ("namespaces", for every host a process in its network namespace)
    ("link", switch, switch, up, both)
                the link between two switches, or one way of it; answered ("link", refusal or None)
    ("dark",)   answered ("dark", ends of the links between switches that have no carrier)
    ("kill", name), ("restart", name)
                a switch or a host; answered ("kill", None), ("restart", process id)

Names: a switch is <tag>s<device id>, its port p is the interface <tag>s<device id>-<p>, whatever
the topology calls it, so that names of any length and alphabet fit into the kernel's 15 characters.
The tag is that of the run, so several can be up at once. Interfaces carry an alias with the process
id of their owner; those of owners that are gone are removed at the next start.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from topologies import mnexec
from topologies.children import Children
from topologies.lifetime import end_with, outlive_parent
from topologies.marks import free_tag, mark_tag, remove_leftovers
from topologies.mininet_plan import (
    FOLDER_PREFIX,
    Half,
    HostPlan,
    LinkPlan,
    RelayPlan,
    StartTimes,
    SwitchPlan,
)
from topologies.network import Host, Network, ip_text, mac_text
from topologies.nursery import Birth
from topologies.pairs import End, has_carrier, make_pairs, remove_pairs
from topologies.shaping import Shape, host_rate, scaled, tc_commands

DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"
"""Where Debian's package puts mininet, out of sight of a virtual environment."""
HOST_INTERFACE = "eth0"
HOST_PORT = 0
GATEWAY = "10.255.255.254"
_OFFLOADS = "tx off rx off sg off tso off gso off gro off"


def load_mininet() -> Any:
    """Import mininet.net from the environment, or from Debian's package.

    Raises ImportError where neither has it.
    """
    try:
        return importlib.import_module("mininet.net")
    except ImportError:
        if DEBIAN_PACKAGES not in sys.path:
            sys.path.append(DEBIAN_PACKAGES)
        return importlib.import_module("mininet.net")


class MininetNetwork:
    """One network that is up, or on its way."""

    def __init__(self, network: Network, tag: str, links: LinkPlan, folder: Path) -> None:
        self._network = network
        self._folder = folder
        self._links = links
        self._pairs: list[tuple[End, End]] = []
        self._relayed: list[tuple[Half, Half]] = []
        self._tag = tag
        self._net = load_mininet().Mininet(controller=None, build=False)
        self._nodes: dict[str, Any] = {}
        self.children = Children()

    def build(self) -> None:
        """Create namespaces, links and addresses."""
        node = importlib.import_module("mininet.node")
        network, net = self._network, self._net
        for name in network.topology.switches:
            self._nodes[name] = net.addSwitch(
                self.switch_name(name), cls=node.Switch, inNamespace=False
            )
        hosts = network.hosts
        for i, host in enumerate(hosts):
            self._nodes[host.name] = net.addHost(f"{self._tag}h{i}", ip=None)
        for link in network.links:
            self._join(
                self._half(link.lower, link.lower_port), self._half(link.upper, link.upper_port)
            )
        for host in hosts:
            outer = Half(HOST_INTERFACE, host.name, HOST_PORT)
            self._join(outer, self._half(host.switch, host.port), mac_text(host.mac))
        make_pairs(self._pairs, self._folder)
        self._quieten()
        self._shape()
        for host in hosts:
            self._address(host)

    def start(self, switches: SwitchPlan, hosts: HostPlan) -> None:
        """Start the processes; those of switches and hosts are not waited for."""
        folder = switches.logs.parent
        if self._relayed:
            links = self._links
            chances = (links.loss, links.duplicate, links.reorder)
            plan = RelayPlan(tuple(self._relayed), *chances, links.seed)
            self.children.run_relay(plan, folder / "relay.log")
        modules = [hosts.module] if switches.module is None else [hosts.module, *switches.module]
        self.children.open_nursery(modules, folder / "nursery.log")
        self._start_switches(switches)
        for host in self._network.hosts:
            words = ["--name", host.name, "--mac", mac_text(host.mac), "--ip", ip_text(host.ip)]
            words += ["--interface", HOST_INTERFACE, "--control", str(hosts.controls / host.name)]
            if host.udp_port:
                words += ["--udp-port", str(host.udp_port)]
            if hosts.journals is not None:
                words += ["--journals", str(hosts.journals)]
            log = hosts.logs / f"{host.name}.log"
            namespace = self._nodes[host.name].pid
            self.children.fork(Birth(hosts.module, tuple(words), host.name, log, namespace))

    def _start_switches(self, plan: SwitchPlan) -> None:
        ports: dict[str, list[int]] = {name: [] for name in self._network.topology.switches}
        for link in self._network.links:
            ports[link.lower].append(link.lower_port)
            ports[link.upper].append(link.upper_port)
        for host in self._network.hosts:
            ports[host.switch].append(host.port)
        for name, numbers in ports.items():
            words = []
            for port in sorted(numbers):
                words += ["-i", f"{port}@{self.interface(name, port)}"]
            words += plan.arguments[name]
            log = plan.logs / f"{self._network.device_id[name]}.log"
            if plan.module is None:
                self.children.run(name, [*plan.command, *words], log)
            else:
                self.children.fork(Birth(plan.module[0], tuple(words), name, log))

    def stop(self) -> None:
        """End every process and remove everything that was created."""
        self.children.stop()
        remove_pairs(self._pairs)
        self._net.stop()

    def namespaces(self) -> dict[str, int]:
        """For every host a process in its network namespace that stays."""
        hosts = self._network.hosts
        return {host.name: self._nodes[host.name].pid for host in hosts}

    def set_link(self, one: str, other: str, up: bool, both: bool = True) -> str | None:
        """Let a link between two switches lose every frame, or none any more; why that cannot be.

        Without `both` it is the way from the one to the other alone. Its interfaces stay up: bmv2
        serves no port any more once one of its interfaces is down.
        """
        shapes = []
        for link in self._network.links:
            if {link.lower, link.upper} == {one, other}:
                bps = 0 if self._links.base is None else scaled(link.rate, self._links.base)
                for switch, port in ((link.lower, link.lower_port), (link.upper, link.upper_port)):
                    if both or switch == one:
                        shapes.append(Shape(self.interface(switch, port), bps))
        # One that carries all already has no queue to be deleted, so it is given one first.
        lines = [f"qdisc replace dev {shape.interface} root pfifo limit 0" for shape in shapes]
        if up:
            lines += [f"qdisc del dev {shape.interface} root" for shape in shapes]
            lines += tc_commands(shape for shape in shapes if shape.bps)
        words = ["tc", "-batch", "-"]
        done = subprocess.run(
            words, input="\n".join(lines), text=True, check=False, capture_output=True
        )
        return " | ".join(done.stderr.splitlines()) if done.returncode else None

    def dark_links(self) -> list[tuple[str, str]]:
        """The ends of links between switches of which an interface is gone, down, or without a
        carrier."""
        return [
            (link.lower, link.upper)
            for link in self._network.links
            if not has_carrier(self.interface(link.lower, link.lower_port))
            or not has_carrier(self.interface(link.upper, link.upper_port))
        ]

    def switch_name(self, switch: str) -> str:
        """The short name of a switch in this run."""
        return f"{self._tag}s{self._network.device_id[switch]}"

    def interface(self, switch: str, port: int) -> str:
        """The interface that is a switch's port."""
        return f"{self.switch_name(switch)}-{port}"

    def _half(self, switch: str, port: int) -> Half:
        return Half(self.interface(switch, port), switch, port)

    def _join(self, one: Half, other: Half, mac: str | None = None) -> None:
        """Make a link: a veth pair, or two with the relay between them. `mac` is that of `one`."""
        if not self._links.has_faults:
            self._pair(one, other, mac)
            return
        name = f"{self._tag}r{len(self._relayed)}"
        inner = (
            Half(f"{name}-1", one.node, one.port),
            Half(f"{name}-2", other.node, other.port),
        )
        self._pair(one, inner[0], mac)
        self._pair(other, inner[1], None)
        self._relayed.append(inner)

    def _pair(self, one: Half, other: Half, mac: str | None) -> None:
        """Note a veth pair from a half to one that lies here; without `mac` one at random."""
        in_host = one.interface == HOST_INTERFACE
        namespace = self._nodes[one.node].pid if in_host else None
        there = End(one.interface, namespace, mac)
        self._pairs.append((End(other.interface), there))

    def _quieten(self) -> None:
        """No IPv6, no offloads, on every interface outside the hosts; then they are up."""
        names = [path.name for path in Path("/sys/class/net").glob(f"{self._tag}*-*")]
        lines = []
        for name in names:
            ipv6 = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
            if ipv6.exists():
                ipv6.write_text("1")
            lines.append(f"link set {name} up")
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
        # Whoever only looks whether mininet is here loads no switch for it.
        from softswitch.ports.interface import disable_offloads

        for name in names:
            disable_offloads(name)

    def _shape(self) -> None:
        """Give the switches' ends of all links their rates; a host's own is shaped with it."""
        base = self._links.base
        if base is None:
            return
        shapes = []
        for link in self._network.links:
            bps = scaled(link.rate, base)
            shapes.append(Shape(self.interface(link.lower, link.lower_port), bps))
            shapes.append(Shape(self.interface(link.upper, link.upper_port), bps))
        for host in self._network.hosts:
            bps = host_rate(self._network, host.name, base)
            shapes.append(Shape(self.interface(host.switch, host.port), bps))
        lines = "\n".join(tc_commands(shapes))
        subprocess.run(["tc", "-batch", "-"], input=lines, text=True, check=True)

    def _address(self, host: Host) -> None:
        """The host's address, a gateway that needs no ARP, and the rate of what it sends."""
        gateway = mac_text(self._network.switch_mac(host.switch))
        shapes = []
        if self._links.base is not None:
            bps = host_rate(self._network, host.name, self._links.base)
            shapes.append(Shape(HOST_INTERFACE, bps))
        batch = (
            # A host that connects to its own address takes this way.
            "link set lo up",
            f"addr add {ip_text(host.ip)}/32 dev {HOST_INTERFACE}",
            f"link set {HOST_INTERFACE} up",
            f"neigh add {GATEWAY} lladdr {gateway} dev {HOST_INTERFACE}",
            f"route add {GATEWAY}/32 dev {HOST_INTERFACE}",
            f"route add default via {GATEWAY}",
        )
        # As few programs as possible: there are many hosts.
        steps = (
            "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
            f"ethtool -K {HOST_INTERFACE} {_OFFLOADS} > /dev/null",
            f"printf '%s\\n' {' '.join(map(shlex.quote, batch))} | ip -batch -",
            *(f"tc {command}" for command in tc_commands(shapes)),
        )
        said = self._nodes[host.name].cmd("; ".join(steps))
        if said.strip():
            raise RuntimeError(f"host {host.name}: {' | '.join(said.splitlines())}")


def serve(connection: Connection, folder: Path) -> None:
    """Bring up what the connection asks for, and take it down when the connection ends.

    `folder` is that of the run.
    """
    _, network, switches, hosts, links = connection.recv()
    remove_leftovers()
    tag = free_tag()
    mark_tag(folder, tag)
    up = MininetNetwork(network, tag, links, folder)
    try:
        try:
            began = time.monotonic()
            up.build()
            built = time.monotonic()
            up.start(switches, hosts)
        except Exception as error:  # Mininet itself raises nothing more special
            connection.send(("failed", f"{type(error).__name__}: {error}"))
        else:
            connection.send(("up", StartTimes(began, built)))
        while True:
            what, *words = connection.recv()
            act: dict[str, Callable[..., object]] = {
                "dead": up.children.dead,
                "pids": up.children.pids,
                "namespaces": up.namespaces,
                "kill": up.children.kill,
                "restart": up.children.restart,
                "link": up.set_link,
                "dark": up.dark_links,
            }
            connection.send((what, act[what](*words)))
    except (EOFError, OSError):
        pass  # the controller is gone, in good order or not
    finally:
        up.stop()


def main(arguments: Sequence[str]) -> int:
    """Serve one network; see the module's text."""
    parser = argparse.ArgumentParser(prog="topologies.mininet_net", description=__doc__)
    parser.add_argument("--control", required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args(arguments)
    # The terminal's Ctrl-C is for the controller; this process ends with the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    mnexec.provide(Path(options.control).with_name("bin"))
    try:
        with Listener(options.control, "AF_UNIX") as listener:
            end_with(options.parent)
            with listener.accept() as connection:
                outlive_parent()
                serve(connection, Path(options.control).parent)
    finally:
        folder = Path(options.control).parent
        if folder.name.startswith(FOLDER_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
