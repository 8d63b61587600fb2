"""Egress queues of switches: how many a port has, how fast and how deep they are.

softswitch takes all of it on its command line. bmv2 takes the number so, rate and depth over its
Thrift service only, in the binary protocol (thrift-binary-protocol specification), of which two
calls are spoken here.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

DEFAULT_DEPTH = 64
"""Packets that a queue of bmv2 holds, if nobody says otherwise."""
MAX_QUEUES = 8
"""A packet's priority has 3 bits."""
THRIFT_DEADLINE_S = 10.0

_SERVICE = "simple_switch"
_VERSION_1 = 0x8001_0000
_CALL, _REPLY = 1, 2
_I32, _I64, _STOP = 8, 10, 0


class QueueError(ValueError):
    """Settings make no sense, or a switch did not take them; the text says which."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Of every port of every switch.

    Attributes:
        queues: priority queues; the highest priority is served first.
        rate: packets a second that each queue lets go, 0 for any number.
        depth: packets that each queue holds before it drops.
    """

    queues: int = 1
    rate: int = 0
    depth: int = DEFAULT_DEPTH

    def __post_init__(self) -> None:
        if not 1 <= self.queues <= MAX_QUEUES:
            raise QueueError(f"{self.queues} priority queues: a port has 1 to {MAX_QUEUES}")
        if not 0 <= self.rate < 1 << 31:
            raise QueueError(f"queue rate {self.rate}: packets a second, 0 for any number")
        if not 1 <= self.depth < 1 << 31:
            raise QueueError(f"queue depth {self.depth}: at least 1 packet")


def set_bmv2_queues(port: int, settings: QueueSettings) -> None:
    """Give all queues of the bmv2 whose Thrift service is at a TCP port their rate and depth.

    Raises QueueError when the switch does not answer in THRIFT_DEADLINE_S, or refuses.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=THRIFT_DEADLINE_S) as thrift:
            _call(
                thrift, "set_all_egress_queue_depths", struct.pack(">bhi", _I32, 1, settings.depth)
            )
            _call(thrift, "set_all_egress_queue_rates", struct.pack(">bhq", _I64, 1, settings.rate))
    except OSError as error:
        raise QueueError(f"its Thrift service at port {port} does not answer: {error}") from error


# Both methods take one number and return 0: `i32 set_all_egress_queue_depths(1:i32 depth_pkts)`
# and `i32 set_all_egress_queue_rates(1:i64 rate_pps)`, as messages
#   version and type | length | "service:method" | sequence   then fields: type | id | value, stop
def _call(thrift: socket.socket, method: str, argument: bytes) -> None:
    name = f"{_SERVICE}:{method}".encode()
    head = struct.pack(">Ii", _VERSION_1 | _CALL, len(name)) + name + struct.pack(">i", 0)
    thrift.sendall(head + argument + bytes((_STOP,)))
    version, length = struct.unpack(">Ii", _receive(thrift, 8))
    if version != _VERSION_1 | _REPLY:
        raise QueueError(f"bmv2 does not know {method}: is it a simple_switch?")
    _receive(thrift, length + 4)
    kind, field, result, stop = struct.unpack(">bhib", _receive(thrift, 8))
    if (kind, field, result, stop) != (_I32, 0, 0, _STOP):
        raise QueueError(f"bmv2 refuses {method}")


def _receive(thrift: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        more = thrift.recv(count - len(received))
        if not more:
            raise QueueError("bmv2 ended the Thrift connection")
        received += more
    return received
