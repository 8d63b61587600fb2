"""What clients of bmv2's Thrift server may ask of a switch here, as its simple_switch_CLI does.

Tables, counters and the like are P4Runtime's; a method that is not served is refused by name. A
result has field id 0; an error that the interface declares has its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Protocol

from softswitch.errors import InvalidArgument, SoftswitchError
from softswitch.ports.errors import PortError
from softswitch.thrift import protocol
from softswitch.thrift.protocol import Call, Field, Value

_OK = protocol.i32(0, 0)
_PORT_ERROR = protocol.nested(1, (protocol.i32(1, 1),))
"""InvalidDevMgrOperation with its only code."""


@dataclass(frozen=True, slots=True)
class PortState:
    """A port as `show_ports` lists it."""

    number: int
    interface: str
    is_up: bool


class SwitchControl(Protocol):
    """A switch process; every method may be called from any thread, and waits for the answer."""

    device_id: int

    def set_queue_rate(self, pps: int, port: int | None, priority: int | None) -> None:
        """Packets/s of queues; raises PortError."""

    def set_queue_depth(self, packets: int, port: int | None, priority: int | None) -> None:
        """Depth of queues; raises PortError."""

    def add_port(self, number: int, interface: str) -> None:
        """Attach an interface; raises PortError."""

    def remove_port(self, number: int) -> None:
        """Detach a port; raises PortError."""

    def port_states(self) -> Sequence[PortState]:
        """All ports."""

    def now_us(self) -> int:
        """The switch's clock."""

    def program_json(self) -> bytes | None:
        """The JSON of the running program, if there is one."""


class Services:
    """Answers calls for one switch whose Thrift server is at `thrift_port`."""

    def __init__(self, switch: SwitchControl, thrift_port: int) -> None:
        self._switch = switch
        self._thrift_port = thrift_port
        queues = {
            "set_all_egress_queue_rates": self._rate,
            "set_egress_queue_rate": self._rate,
            "set_egress_priority_queue_rate": self._rate,
            "set_all_egress_queue_depths": self._depth,
            "set_egress_queue_depth": self._depth,
            "set_egress_priority_queue_depth": self._depth,
            "get_time_elapsed_us": lambda _: (protocol.i64(0, switch.now_us()),),
            "get_time_since_epoch_us": lambda _: (protocol.i64(0, time.time_ns() // 1000),),
        }
        standard = {
            "bm_dev_mgr_add_port": self._add_port,
            "bm_dev_mgr_remove_port": self._remove_port,
            "bm_dev_mgr_show_ports": self._show_ports,
            "bm_mgmt_get_info": self._info,
            "bm_get_config": lambda _: (protocol.string(0, self._json()),),
            "bm_get_config_md5": lambda _: (protocol.string(0, md5(self._json()).digest()),),
        }
        self._methods: Mapping[str, Callable[[dict[int, Value]], Sequence[Field]]] = {
            **{f"simple_switch:{name}": method for name, method in queues.items()},
            **{f"standard:{name}": method for name, method in standard.items()},
        }

    def answer(self, call: Call) -> bytes:
        """The bytes that answer a call."""
        method = self._methods.get(call.name)
        if method is None:
            return protocol.exception(
                call,
                protocol.UNKNOWN_METHOD,
                f"softswitch does not serve {call.name} over Thrift: use P4Runtime",
            )
        try:
            fields = method(call.arguments)
        except SoftswitchError as error:
            return protocol.exception(call, protocol.INTERNAL_ERROR, str(error))
        return protocol.message(protocol.REPLY, call.name, call.sequence, fields)

    # The last argument is the value; those before it are the place.

    def _rate(self, arguments: dict[int, Value]) -> Sequence[Field]:
        value, port, priority = _queue(arguments)
        self._switch.set_queue_rate(value, port, priority)
        return (_OK,)

    def _depth(self, arguments: dict[int, Value]) -> Sequence[Field]:
        value, port, priority = _queue(arguments)
        self._switch.set_queue_depth(value, port, priority)
        return (_OK,)

    def _add_port(self, arguments: dict[int, Value]) -> Sequence[Field]:
        name = arguments.get(1)
        if not isinstance(name, bytes):
            raise InvalidArgument("the name of the interface is missing")
        try:
            self._switch.add_port(_number(arguments, 2), name.decode("utf-8", "replace"))
        except PortError:
            return (_PORT_ERROR,)
        return ()

    def _remove_port(self, arguments: dict[int, Value]) -> Sequence[Field]:
        try:
            self._switch.remove_port(_number(arguments, 1))
        except PortError:
            return (_PORT_ERROR,)
        return ()

    def _show_ports(self, arguments: dict[int, Value]) -> Sequence[Field]:
        ports = [
            (
                protocol.i32(1, port.number),
                protocol.string(2, port.interface.encode()),
                protocol.boolean(3, port.is_up),
                protocol.no_strings(4),
            )
            for port in self._switch.port_states()
        ]
        return (protocol.structs(0, ports),)

    def _info(self, arguments: dict[int, Value]) -> Sequence[Field]:
        device, port = self._switch.device_id, self._thrift_port
        return (protocol.nested(0, (protocol.i64(1, device), protocol.i32(2, port))),)

    def _json(self) -> bytes:
        # what bmv2 gives before there is a program
        return self._switch.program_json() or b"{}"


def _queue(arguments: dict[int, Value]) -> tuple[int, int | None, int | None]:
    """(value, port, priority) of a call with one to three numbers."""
    numbers = [_number(arguments, at) for at in range(1, len(arguments) + 1)]
    if not 1 <= len(numbers) <= 3:
        raise InvalidArgument(f"{len(numbers)} numbers for a queue: [port, [queue,]] value")
    *place, value = numbers
    port, priority = [*place, None, None][:2]
    return value, port, priority


def _number(arguments: dict[int, Value], at: int) -> int:
    found = arguments.get(at)
    if not isinstance(found, int):
        raise InvalidArgument(f"argument {at} is missing or no number")
    return found
