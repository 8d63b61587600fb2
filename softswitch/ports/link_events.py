"""What the kernel tells of interfaces as they go up, down and away: rtnetlink(7), RTMGRP_LINK."""

from __future__ import annotations

import errno
import logging
import socket
import struct
from collections.abc import Iterable, Iterator

from softswitch.ports.attached import Attached
from softswitch.ports.interface import IFF_RUNNING, IFF_UP

LOG = logging.getLogger("softswitch")

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


def note(ports: Iterable[Attached], changes: dict[int, bool], lost: bool) -> None:
    """Note what `read` returned on the ports, with a line of the log for each that changed."""
    for port in ports:
        before = port.works
        port.works = changes.get(port.interface.index, before)
        if lost:
            port.look()
        if port.works != before:
            LOG.log(
                logging.INFO if port.works else logging.WARNING,
                "Port %d: interface %s went %s",
                port.number,
                port.interface.name,
                "up" if port.works else "down",
            )


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
