"""What Thrift clients do to a switch process, carried to the thread that runs its packets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from softswitch.ports import DataPlane, PortError, parse_port
from softswitch.ports.wanted import WantedPorts
from softswitch.thrift.services import PortState


class RemoteControl:
    """A `softswitch.thrift.SwitchControl` of a running data plane."""

    def __init__(
        self,
        device_id: int,
        plane: DataPlane,
        wanted: WantedPorts,
        clock: Callable[[], int],
        program: Callable[[], bytes | None],
    ) -> None:
        self.device_id = device_id
        self._plane = plane
        self._wanted = wanted
        self._clock = clock
        self._program = program

    def set_queue_rate(self, pps: int, port: int | None, priority: int | None) -> None:
        """Packets/s of queues; raises PortError."""
        self._plane.call(lambda: self._plane.set_queue_rate(pps, port, priority))

    def set_queue_depth(self, packets: int, port: int | None, priority: int | None) -> None:
        """Depth of queues; raises PortError."""
        self._plane.call(lambda: self._plane.set_queue_depth(packets, port, priority))

    def add_port(self, number: int, interface: str) -> None:
        """Attach an interface; raises PortError."""
        name = parse_port(f"{number}@{interface}")

        def add() -> None:
            wanted = self._wanted.with_port(name)
            try:
                self._plane.set_ports(wanted)
            except PortError:
                self._wanted.without_port(number)
                raise

        self._plane.call(add)

    def remove_port(self, number: int) -> None:
        """Detach a port; raises PortError."""
        self._plane.call(lambda: self._plane.set_ports(self._wanted.without_port(number)))

    def port_states(self) -> Sequence[PortState]:
        """All ports, by number."""
        return self._plane.call(
            lambda: [
                PortState(port.number, port.interface.name, port.look())
                for port in self._plane.ports()
            ]
        )

    def now_us(self) -> int:
        """The switch's clock."""
        return self._clock()

    def program_json(self) -> bytes | None:
        """The JSON of the running program, if there is one."""
        return self._program()
