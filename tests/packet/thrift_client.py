"""Calls of bmv2's Thrift server, as its simple_switch_CLI makes them: queues and ports.

Thrift's binary protocol, without a frame, to one of several services behind a port: the name of
the service comes before the method's.
"""

from __future__ import annotations

import socket
import struct

_VERSION_CALL = 0x80010001
_VERSION_REPLY = 0x80010002
_STOP, _I32, _I64, _STRING = 0, 8, 10, 11
_DEADLINE_S = 10.0


def set_queue_rate(thrift_port: int, port: int, priority: int, packets_per_second: int) -> None:
    """``set_queue_rate PPS PORT PRIORITY``."""
    fields = _i32(1, port) + _i32(2, priority) + _i64(3, packets_per_second)
    answer = _call(thrift_port, "simple_switch:set_egress_priority_queue_rate", fields)
    assert answer == _i32(0, 0) + bytes([_STOP])


def set_queue_depth(thrift_port: int, port: int, priority: int, packets: int) -> None:
    """``set_queue_depth N PORT PRIORITY``."""
    fields = _i32(1, port) + _i32(2, priority) + _i32(3, packets)
    answer = _call(thrift_port, "simple_switch:set_egress_priority_queue_depth", fields)
    assert answer == _i32(0, 0) + bytes([_STOP])


def add_port(thrift_port: int, port: int, interface: str) -> bool:
    """``port_add INTERFACE PORT``; False if the switch refuses."""
    name = interface.encode()
    fields = struct.pack(">bhi", _STRING, 1, len(name)) + name + _i32(2, port)
    fields += struct.pack(">bhi", _STRING, 3, 0)
    return _call(thrift_port, "standard:bm_dev_mgr_add_port", fields) == bytes([_STOP])


def remove_port(thrift_port: int, port: int) -> bool:
    """``port_remove PORT``; False if the switch refuses."""
    answer = _call(thrift_port, "standard:bm_dev_mgr_remove_port", _i32(1, port))
    return answer == bytes([_STOP])


def _i32(number: int, value: int) -> bytes:
    return struct.pack(">bhi", _I32, number, value)


def _i64(number: int, value: int) -> bytes:
    return struct.pack(">bhq", _I64, number, value)


def _call(thrift_port: int, name: str, fields: bytes) -> bytes:
    """Call a method; the struct that answers it."""
    head = struct.pack(">II", _VERSION_CALL, len(name)) + name.encode() + struct.pack(">i", 1)
    with socket.create_connection(("127.0.0.1", thrift_port), _DEADLINE_S) as sock:
        sock.sendall(head + fields + bytes([_STOP]))
        sock.shutdown(socket.SHUT_WR)
        with sock.makefile("rb") as answer:
            version, length = struct.unpack(">II", answer.read(8))
            assert version == _VERSION_REPLY, answer.read(length)
            answer.read(length + 4)
            return answer.read()
