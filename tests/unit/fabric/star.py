"""A star: a forwarding node between workers and their destination, nothing summed on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.unit.traffic.hosts import (
    DESTINATION_IP,
    DESTINATION_MAC,
    destination,
    worker,
    worker_config,
)
from topologies.fabric import HOST_PORT, Fabric, LinkSpec
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.host import Host
from traffic.message import ip_bytes, mac_bytes
from traffic.worker import Worker
from traffic.workloads import exact_sums

MULTICAST_BIT = 1


class Star:
    """Sends frames for the destination to port 0, multicast to all others, the rest by address."""

    def __init__(self, ports: dict[bytes, int]) -> None:
        self._ports = ports

    def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
        if data[0] & MULTICAST_BIT:
            return [(out, data) for out in self._ports.values() if out != port]
        out = self._ports.get(data[30:34])
        return [] if out is None else [(out, data)]


@dataclass(frozen=True, slots=True)
class Job:
    """One job of the star."""

    workers: list[Worker]
    destination: Destination
    values: NDArray[np.int32]

    @property
    def expected(self) -> NDArray[np.int64]:
        return exact_sums(self.values)


def star(
    jobs: Sequence[NDArray[np.int32]], spec: LinkSpec, seed: int = 0, **changes: Any
) -> tuple[Fabric, list[Job]]:
    """A network in which job number j + 1 sums jobs[j], an array [workers, chunks, lanes]."""
    count = len(jobs[0])
    made = []
    for number, values in enumerate(jobs, start=1):
        alone = [frozenset({rank}) for rank in range(count)]
        settings = {"job": number, "op": changes.get("op", Op.ALLREDUCE)}
        workers = [
            worker(rank, count, values[rank], **{**changes, **settings}) for rank in range(count)
        ]
        target = destination(alone, count, chunks=values.shape[1], **settings)
        made.append(Job(workers, target, values))
    fabric = Fabric(seed)
    fabric.add_host(
        "d", Host("d", DESTINATION_MAC, DESTINATION_IP, [job.destination for job in made])
    )
    ports = {ip_bytes(DESTINATION_IP): 0}
    for rank in range(count):
        config = worker_config(rank, count)
        ports[ip_bytes(config.ip)] = rank + 1
        endpoints = [job.workers[rank] for job in made]
        fabric.add_host(f"w{rank}", Host(f"w{rank}", config.mac, config.ip, endpoints))
    fabric.add_switch("s", _addressed(ports, count))
    fabric.connect(("d", HOST_PORT), ("s", 0), spec)
    for rank in range(count):
        fabric.connect((f"w{rank}", HOST_PORT), ("s", rank + 1), spec)
    return fabric, made


def _addressed(ports: dict[bytes, int], count: int) -> "Router":
    macs = {0: mac_bytes(DESTINATION_MAC)}
    macs |= {rank + 1: mac_bytes(worker_config(rank, count).mac) for rank in range(count)}
    return Router(Star(ports), macs)


class Router:
    """Gives unicast frames the address of the next hop, as a router does."""

    def __init__(self, inner: Star, macs: dict[int, bytes]) -> None:
        self._inner = inner
        self._macs = macs

    def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
        return [
            (out, frame if frame[0] & MULTICAST_BIT else self._macs[out] + frame[6:])
            for out, frame in self._inner.process(port, data)
        ]
