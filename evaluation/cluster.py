"""Training jobs on the fabric, see `evaluation.training_jobs`.

Both switches run the compiled P4 program, with eight queues a port. Pushes meet in the edge
switch's queues of the shared link, answers in those of the core switch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evaluation.training_jobs import CORE, EDGE, FAST, JobResult, TrainingJobs, TrainingSettings
from p4src import artefacts
from p4src.constants import LANES, QUEUES
from softswitch import Switch
from topologies.fabric import HOST_PORT, Direction, Fabric, LinkSpec, PortQueues
from topologies.network import Host, ip_text, mac_text
from traffic.host import Host as HostAgent
from traffic.message import ETHERNET_BYTES, HEADER_BYTES, IPV4_BYTES, LANE_BYTES, UDP_BYTES
from traffic.ticket import TICKET_OPTIONS_BYTES
from traffic.training import Schedule, TrainingReport, TrainingWorker, server

__all__ = ["Cluster"]

_DELAY_NS = 1_000
_PAYLOAD_BYTES = LANES * LANE_BYTES
_FRAME_BYTES = (
    ETHERNET_BYTES + IPV4_BYTES + TICKET_OPTIONS_BYTES + UDP_BYTES + HEADER_BYTES + _PAYLOAD_BYTES
)


class Cluster:
    """Jobs on a fabric of their own; run it once."""

    def __init__(self, schedules: tuple[Schedule, ...], settings: TrainingSettings) -> None:
        """Build the network and program its switches; raises as `TrainingJobs`."""
        self._jobs = TrainingJobs(schedules, settings)
        self.network = self._jobs.network
        self._switches = {
            name: Switch.load(artefacts.load().json, device_id=i, queues=QUEUES)
            for i, name in enumerate((CORE, EDGE), start=1)
        }
        self._program()
        self._workers = [(host, TrainingWorker(told)) for host, told in self._jobs.trainers()]
        self.fabric = self._connect(settings)

    def run(self, progress: Callable[[], None] | None = None) -> tuple[JobResult, ...]:
        """Train; the results of each job."""
        self.fabric.run(until=self.fabric.all_finished, progress=progress)
        return self._jobs.results([TrainingReport.of(worker) for _, worker in self._workers])

    @property
    def shared_links(self) -> tuple[Direction, Direction]:
        """The shared link, towards the servers and back."""
        return self.fabric.direction(EDGE, CORE), self.fabric.direction(CORE, EDGE)

    def queues(self, switch: str) -> PortQueues:
        """The queues of a switch at the shared link."""
        port = self.network.parent_port[1] if switch == EDGE else self.network.child_port[1]
        return self.fabric.queues(switch, port)

    def queued(self, switch: str) -> Mapping[int, int]:
        """Packets that a switch has placed so far, by priority."""
        return {
            priority: self._switches[switch].counter("queued", priority)[0]
            for priority in range(QUEUES)
        }

    def _program(self) -> None:
        for program in self._jobs.programs():
            switch = self._switches[program.name]
            for entry in program.entries:
                match, params = dict(entry.match), dict(entry.params)
                switch.insert(entry.table, match, entry.action, params, entry.priority)
            for group in program.groups:
                switch.multicast_group(group.id, group.replicas)

    def _connect(self, settings: TrainingSettings) -> Fabric:
        network = self.network
        frame_rate = settings.payload_rate * _FRAME_BYTES // _PAYLOAD_BYTES
        shared = LinkSpec(
            rate=frame_rate, delay=_DELAY_NS, queue_frames=settings.depth, loss=settings.loss
        )
        fast = LinkSpec(rate=FAST * frame_rate, delay=_DELAY_NS, loss=settings.loss)
        fabric = Fabric(seed=settings.seed)
        for name, switch in self._switches.items():
            fabric.add_queued_switch(name, switch.device, QUEUES)
        (link,) = network.links
        fabric.connect((link.lower, link.lower_port), (link.upper, link.upper_port), shared)
        servers = _host(network.destination)
        for told in self._jobs.servers():
            servers.attach(server(told))
        agents = [(network.destination, servers)]
        for host, worker in self._workers:
            agents.append((host, _host(host)))
            agents[-1][1].attach(worker)
        for host, agent in agents:
            fabric.add_host(host.name, agent)
            fabric.connect((host.name, HOST_PORT), (host.switch, host.port), fast)
        return fabric


def _host(host: Host) -> HostAgent:
    return HostAgent(host.name, mac_text(host.mac), ip_text(host.ip))
