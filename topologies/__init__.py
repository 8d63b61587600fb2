"""Networks of switches: generated, or read from a file, with workers and rates laid over them."""

from topologies.errors import TopologyError
from topologies.spec import FAMILIES, parse
from topologies.topology import Overlay, Topology
from topologies.workload import RATE_LAWS, WorkloadOptions

__all__ = [
    "FAMILIES",
    "RATE_LAWS",
    "Overlay",
    "Topology",
    "TopologyError",
    "WorkloadOptions",
    "parse",
]
