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
    """Copies multicast to every other port; sends the rest where its IPv4 address lives."""

    def __init__(self) -> None:
        self._hosts: dict[bytes, tuple[int, bytes]] = {}

    def add(self, port: int, ip: str, mac: str) -> None:
        self._hosts[ip_bytes(ip)] = (port, mac_bytes(mac))

    def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
        if data[0] & MULTICAST_BIT:
            return [(out, data) for out, _ in self._hosts.values() if out != port]
        host = self._hosts.get(data[30:34])
        return [] if host is None else [(host[0], host[1] + data[6:])]


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
    switch = Star()
    switch.add(0, DESTINATION_IP, DESTINATION_MAC)
    fabric.add_switch("s", switch)
    fabric.connect(("d", HOST_PORT), ("s", 0), spec)
    for rank in range(count):
        config = worker_config(rank, count)
        switch.add(rank + 1, config.ip, config.mac)
        endpoints = [job.workers[rank] for job in made]
        fabric.add_host(f"w{rank}", Host(f"w{rank}", config.mac, config.ip, endpoints))
        fabric.connect((f"w{rank}", HOST_PORT), ("s", rank + 1), spec)
    return fabric, made
