"""What the kernel tells of interfaces as they go up, down and away: rtnetlink(7), RTMGRP_LINK."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator

from softswitch.ports.interface import IFF_RUNNING, IFF_UP

_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK = 16, 17
# struct nlmsghdr: length, type, flags, sequence, port; struct ifinfomsg: family, type, index, flags
_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_BUFFER = 1 << 16


class LinkEvents:
    """A socket that the kernel tells link changes on."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setblocking(False)
        self._socket.bind((0, _RTMGRP_LINK))

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def read(self) -> tuple[dict[int, bool], bool]:
        """Return what has come: whether each interface works, by index, and whether some was lost.

        An interface works if it is up and has a carrier.
        """
        found: dict[int, bool] = {}
        lost = False
        while True:
            try:
                data = self._socket.recv(_BUFFER)
            except BlockingIOError:
                return found, lost
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                lost = True
                continue
            found.update(_changes(data))

    def close(self) -> None:
        """Hear no more."""
        self._socket.close()


def _changes(data: bytes) -> Iterator[tuple[int, bool]]:
    at = 0
    while at + _HEADER.size + _LINK.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if kind in (_RTM_NEWLINK, _RTM_DELLINK):
            _, _, index, flags, _ = _LINK.unpack_from(data, at + _HEADER.size)
            works = flags & (IFF_UP | IFF_RUNNING) == IFF_UP | IFF_RUNNING
            yield index, works and kind == _RTM_NEWLINK
        if length < _HEADER.size:
            return
        at += (length + 3) & ~3
