"""The calls of bmv2's Thrift server that set queues, as its simple_switch_CLI makes them.

Thrift's binary protocol, without a frame, to one of several services behind a port: the name of
the service comes before the method's.
"""

from __future__ import annotations

import socket
import struct

_VERSION_CALL = 0x80010001
_VERSION_REPLY = 0x80010002
_STOP, _I32, _I64 = 0, 8, 10
_DEADLINE_S = 10.0


def set_queue_rate(thrift_port: int, port: int, priority: int, packets_per_second: int) -> None:
    """``set_queue_rate PPS PORT PRIORITY``."""
    call(
        thrift_port,
        "set_egress_priority_queue_rate",
        (_I32, port),
        (_I32, priority),
        (_I64, packets_per_second),
    )


def set_queue_depth(thrift_port: int, port: int, priority: int, packets: int) -> None:
    """``set_queue_depth N PORT PRIORITY``."""
    call(
        thrift_port,
        "set_egress_priority_queue_depth",
        (_I32, port),
        (_I32, priority),
        (_I32, packets),
    )


def call(thrift_port: int, method: str, *arguments: tuple[int, int]) -> int:
    """Call a method of the service simple_switch; its result, an i32."""
    name = f"simple_switch:{method}".encode()
    message = struct.pack(">II", _VERSION_CALL, len(name)) + name + struct.pack(">i", 1)
    for number, (kind, value) in enumerate(arguments, 1):
        message += struct.pack(">bh", kind, number)
        message += struct.pack(">i" if kind == _I32 else ">q", value)
    message += bytes([_STOP])
    with socket.create_connection(("127.0.0.1", thrift_port), _DEADLINE_S) as sock:
        sock.sendall(message)
        with sock.makefile("rb") as answer:
            version, length = struct.unpack(">II", answer.read(8))
            assert version == _VERSION_REPLY, answer.read(length)
            answer.read(length + 4)
            kind, number, result = struct.unpack(">bhi", answer.read(7))
            assert (kind, number) == (_I32, 0)
            return int(result)
