"""The simulated network: deterministic, on a virtual clock, in one process."""

from topologies.fabric.errors import FabricError, FrameTooLargeError
from topologies.fabric.fabric import Fabric, RunResult, StopReason
from topologies.fabric.link import Direction, LinkCounters, LinkSpec, Tap
from topologies.fabric.nodes import HOST_PORT, HostAgent, PacketDevice

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
    "RunResult",
    "StopReason",
    "Tap",
]
