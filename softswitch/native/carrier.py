"""Frames from the ring of a port through a native pipeline to the sockets of others, in one call.

No frame becomes a Python object on the way, except what leaves by no interface (packet-ins).
"""

import ctypes
import os
from collections.abc import Callable

from softswitch.native.state import NativeState
from softswitch.ports.attached import Attached
from softswitch.ports.port import Port

_LINKS = 512
_NONE = -1


class _Ring(ctypes.Structure):
    """``Ring`` of tail.c."""

    _fields_ = (
        ("memory", ctypes.c_void_p),
        ("port", ctypes.c_uint64),
        ("oversize", ctypes.c_uint64),
        ("slot", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("at", ctypes.c_uint32),
        ("limit", ctypes.c_uint32),
        ("taken", ctypes.c_uint32),
        ("unusual", ctypes.c_uint32),
    )


class _Link(ctypes.Structure):
    """``Link`` of tail.c."""

    _fields_ = (
        ("fd", ctypes.c_int64),
        ("oversize", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("error", ctypes.c_uint64),
    )


class Carrier:
    """The ports of one switch process, as native code sees them.

    After `carry`, `taken` is how many frames were; `unusual` says that the next one in the ring
    needs the care of `Port.receive` (a VLAN tag to be put back, a checksum to be completed).
    """

    def __init__(self) -> None:
        self._links = (_Link * _LINKS)()
        for link in self._links:
            link.fd = _NONE
        self._at = ctypes.addressof(self._links)
        self._rings: dict[int, _Ring] = {}
        self.taken = 0
        self.unusual = False

    def attach(self, port: Attached) -> None:
        """Let packets leave by a port, and come from it, if it is one on an interface."""
        view = port.native_ring() if isinstance(port, Port) else None
        if view is None:
            return
        self._rings[port.number] = _Ring(
            memory=view.address, port=port.number, slot=view.slot, slots=view.slots
        )
        if port.number < _LINKS:
            self._links[port.number] = _Link(fd=port.fileno())

    def detach(self, port: Attached) -> None:
        """Forget a port; its counts are settled."""
        self.settle(port)
        if self._rings.pop(port.number, None) is not None and port.number < _LINKS:
            self._links[port.number].fd = _NONE

    def carry(
        self, state: NativeState | None, source: Attached, limit: int, clock: Callable[[], int]
    ) -> list[tuple[int, bytes]] | None:
        """Take at most `limit` frames of a port; what leaves by a port that is not attached.

        None if native code cannot: there is none, or some port is recorded or a file.
        """
        ring = self._rings.get(source.number)
        if state is None or ring is None or not isinstance(source, Port):
            return None
        view = source.native_ring()
        if view is None:
            return None
        ring.at = view.at
        ring.limit = limit
        left = state.carry(ctypes.addressof(ring), self._at, clock())
        source.ring_moved(ring.at)
        self.taken, self.unusual = ring.taken, bool(ring.unusual)
        if state.has_events:
            state.tell()
        return left

    def settle(self, port: Attached) -> None:
        """Give the losses since the last call to the port that counts them; OSError for others."""
        ring = self._rings.get(port.number)
        if ring is None or not isinstance(port, Port):
            return
        oversize, ring.oversize = ring.oversize, 0
        if port.number >= _LINKS:
            port.count_losses(oversize, 0, 0)
            return
        link = self._links[port.number]
        port.count_losses(oversize, link.oversize, link.refused)
        error = link.error
        link.oversize = link.refused = link.error = 0
        if error:
            raise OSError(error, os.strerror(error), port.interface.name)
