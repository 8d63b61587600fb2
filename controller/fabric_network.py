"""A network on the fabric: switches as devices, hosts as agents, and a P4Runtime server for all.

Switches run p4c's output in this process and are reached through a real P4Runtime server, as those
of any other target are; links, queues and hosts live on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from controller.p4rt import SwitchAddress
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread
from topologies.fabric import Fabric
from topologies.fabric.build import Conditions, build_fabric, link_rates
from topologies.network import CPU_PORT, Network, ip_text, mac_text
from topologies.network import Host as NetworkHost
from traffic.host import Host


class FabricNetwork:
    """Devices by switch name, agents by host name, and the fabric between them."""

    def __init__(self, network: Network, conditions: Conditions) -> None:
        self.network = network
        self.devices = {name: self.new_device(name) for name in network.topology.switches}
        self.agents = {host.name: self.new_agent(host) for host in network.hosts}
        self.rates = link_rates(network, conditions.base)
        self.fabric: Fabric = build_fabric(network, self.devices, self.agents, conditions)
        # Hosts begin without a job; jobs are attached to them and started one by one.
        self.fabric.run()

    def new_device(self, name: str) -> Device:
        """A switch without a program, at the place of `name`."""
        return Device(device_id=self.network.device_id[name], cpu_port=CPU_PORT)

    @staticmethod
    def new_agent(host: NetworkHost) -> Host:
        """A host without a job."""
        return Host(host.name, mac_text(host.mac), ip_text(host.ip))

    @contextmanager
    def serve(self) -> Iterator[tuple[SwitchAddress, ...]]:
        """Serve P4Runtime for all switches on a free port of loopback; where each is."""
        with ServerThread(P4RuntimeServer(self.devices.values())) as server:
            self._server = server
            yield tuple(
                SwitchAddress(name, server.address, device.device_id)
                for name, device in self.devices.items()
            )

    def kill(self, name: str) -> None:
        """Kill a switch or a host, in the middle of what it does; P4Runtime is down too."""
        self.fabric.fail(name)
        if name in self.devices:
            self._server.withdraw(self.devices[name].device_id)

    def set_link(self, one: str, other: str, *, up: bool, both: bool = True) -> None:
        """Take the link between two switches down, losing what is on it, or up again.

        Without `both` it is the way from the one to the other alone.
        """
        self.fabric.set_link(one, other, up=up, both=both)

    def restart(self, name: str) -> None:
        """Start what was killed anew: a switch without a program, with empty registers; a host
        without a job."""
        if name in self.agents:
            host = next(one for one in self.network.hosts if one.name == name)
            self.agents[name] = self.new_agent(host)
            self.fabric.restart(name, agent=self.agents[name])
            return
        device = self.devices[name] = self.new_device(name)
        self.fabric.restart(name, device)
        self._server.offer(device)
