"""The simulated network: deterministic, on a virtual clock, in one process."""

from topologies.fabric.errors import FabricError, FrameTooLargeError
from topologies.fabric.fabric import Fabric, RunResult, StopReason
from topologies.fabric.link import Direction, LinkCounters, LinkSpec, Tap
from topologies.fabric.nodes import HOST_PORT, HostAgent, PacketDevice
from topologies.fabric.queues import PortQueues, QueuedDevice

__all__ = [
    "HOST_PORT",
    "Direction",
    "Fabric",
    "FabricError",
    "FrameTooLargeError",
    "HostAgent",
    "LinkCounters",
    "LinkSpec",
    "PacketDevice",
    "PortQueues",
    "QueuedDevice",
    "RunResult",
    "StopReason",
    "Tap",
]
