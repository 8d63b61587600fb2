"""Which ports a switch process should have: by its options, its file, and who asked since."""

from __future__ import annotations

from pathlib import Path

from softswitch.ports.errors import PortError
from softswitch.ports.naming import PortName, check_distinct, read_ports


class WantedPorts:
    """The ports of the command line and of a file, and those added and removed since."""

    def __init__(self, fixed: tuple[PortName, ...], path: Path | None) -> None:
        self._fixed = fixed
        self._path = path
        self._added: dict[int, PortName] = {}
        self._removed: set[int] = set()

    def now(self) -> tuple[PortName, ...]:
        """All of them, the file as it is now; raises PortNameError."""
        listed = read_ports(self._path) if self._path is not None else ()
        first = [name for name in (*self._fixed, *listed) if name.port not in self._removed]
        wanted = tuple(dict.fromkeys((*first, *self._added.values())))
        check_distinct(wanted)
        return wanted

    def with_port(self, name: PortName) -> tuple[PortName, ...]:
        """Have one more; all of them. Raises PortNameError, and changes nothing then."""
        before = self.now()
        check_distinct((*before, name))
        self._removed.discard(name.port)
        self._added[name.port] = name
        return self.now()

    def without_port(self, number: int) -> tuple[PortName, ...]:
        """Have one less; all of them. Raises PortError if there is none of that number."""
        if all(name.port != number for name in self.now()):
            raise PortError(f"there is no port {number}")
        self._added.pop(number, None)
        self._removed.add(number)
        return self.now()
