"""Workers and a destination to test with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p4src.constants import LANES, Kind
from traffic.destination import Destination, DestinationConfig
from traffic.endpoint import Op
from traffic.message import (
    DESTINATION_SOURCE,
    Flow,
    Message,
    encode_frame,
    group_ip,
    group_mac,
    pack_lanes,
)
from traffic.worker import Worker, WorkerConfig

JOB = 7
EPOCH = 3
DESTINATION_MAC = "02:00:00:00:ff:01"
DESTINATION_IP = "10.9.0.1"
SWITCH_MAC = "02:00:00:00:aa:01"


def worker_config(rank: int, workers: int, **changes: Any) -> WorkerConfig:
    settings: dict[str, Any] = {
        "name": f"w{rank}",
        "job": JOB,
        "epoch": EPOCH,
        "source": rank + 1,
        "rank": rank,
        "workers": workers,
        "mac": f"02:00:00:01:{rank >> 8:02x}:{rank & 255:02x}",
        "ip": f"10.1.{rank >> 8}.{rank & 255}",
        "udp_port": 40000 + rank,
        "gateway_mac": SWITCH_MAC,
        "destination_ip": DESTINATION_IP,
        "window": 4,
        "op": Op.ALLREDUCE,
    }
    settings.update(changes)
    settings.setdefault("group_ip", group_ip(settings["job"]))
    return WorkerConfig(**settings)


def worker(
    rank: int,
    workers: int,
    values: NDArray[np.int32] | None = None,
    chunks: int = 8,
    **changes: Any,
) -> Worker:
    if values is None:
        values = whole_numbers(1, chunks, seed=rank)[0]
    return Worker(worker_config(rank, workers, **changes), values)


def destination(sources: Sequence[frozenset[int]], workers: int, **changes: Any) -> Destination:
    """Source ids count from 1, in the order of `sources`."""
    settings: dict[str, Any] = {
        "job": JOB,
        "epoch": EPOCH,
        "mac": DESTINATION_MAC,
        "ip": DESTINATION_IP,
        "op": Op.ALLREDUCE,
        "chunks": 4,
        "sources": dict(enumerate(sources, start=1)),
        "workers": [f"w{rank}" for rank in range(workers)],
    }
    settings.update(changes)
    settings.setdefault("group_ip", group_ip(settings["job"]))
    settings.setdefault("group_mac", group_mac(settings["group_ip"]))
    return Destination(DestinationConfig(**settings))


def whole_numbers(workers: int, chunks: int, seed: int) -> NDArray[np.int32]:
    """Values [workers, chunks, LANES] of any sign whose sums fit."""
    limit = (2**31 - 1) // max(workers, 1)
    shape = (workers, chunks, LANES)
    return np.random.default_rng(seed).integers(-limit, limit, shape, dtype=np.int32)


def contribution(
    source: int, values: Sequence[int], weight: int = 1, chunk: int = 0, **changes: Any
) -> bytes:
    """A frame to the destination."""
    fields: dict[str, Any] = {
        "kind": Kind.CONTRIBUTE.value,
        "flags": 0,
        "job": JOB,
        "source": source,
        "epoch": EPOCH,
        "chunk": chunk,
        "weight": weight,
        "lanes": pack_lanes(values),
    }
    fields.update(changes)
    flow = Flow("02:00:00:00:00:09", DESTINATION_MAC, "10.1.0.9", DESTINATION_IP, 40000)
    return encode_frame(flow, Message(**fields), len(values))


def answer(config: WorkerConfig, chunk: int, **changes: Any) -> bytes:
    """A frame from the destination as the last switch hands it to a worker."""
    reduce = config.op is Op.REDUCE
    fields: dict[str, Any] = {
        "kind": Kind.ACK.value if reduce else Kind.RESULT.value,
        "flags": 0,
        "job": config.job,
        "source": DESTINATION_SOURCE,
        "epoch": config.epoch,
        "chunk": chunk,
        "weight": config.workers,
        "lanes": b"" if reduce else pack_lanes([chunk % 1000 + lane for lane in range(LANES)]),
    }
    dst_ip = changes.pop("dst_ip", config.ip)
    dst_port = changes.pop("dst_port", config.udp_port)
    src_ip = changes.pop("src_ip", DESTINATION_IP)
    src_port = changes.pop("src_port", 9590)
    fields.update(changes)
    flow = Flow(SWITCH_MAC, config.mac, src_ip, dst_ip, src_port, dst_port)
    return encode_frame(flow, Message(**fields))
