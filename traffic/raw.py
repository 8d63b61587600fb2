"""Frames of an interface of this network namespace, through a raw socket (packet(7))."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from traffic.message import PROTOCOL_UDP

_ETH_P_IP = 0x0800
_PACKET_OUTGOING = 4
_PROTOCOL_AT = 23
_BUFFER_BYTES = 16 * 1024 * 1024
_LARGEST_FRAME = 65535
_RECEIVED_AT_ONCE = 64


def open_raw(interface: str) -> socket.socket:
    """A socket for the IPv4 frames of an interface; raises OSError, as it needs root."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        raw.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    raw.bind((interface, _ETH_P_IP))
    return raw


def occupy(ip: str, port: int) -> socket.socket:
    """Hold the UDP port, so that the kernel does not answer each message with "unreachable"."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Several machines of one host may hold it: nobody reads from it.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((ip, port))
    return holder


def received(raw: socket.socket) -> Iterator[bytes]:
    """The UDP frames that wait in a socket, a limited number at a time."""
    for _ in range(_RECEIVED_AT_ONCE):
        try:
            frame, address = raw.recvfrom(_LARGEST_FRAME, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as error:
            # The link has been down since the last look; it may be up again.
            if error.errno == errno.ENETDOWN:
                return
            raise
        # The kernel answers everything but UDP, and shows a raw socket what it sends itself.
        if address[2] != _PACKET_OUTGOING and frame[_PROTOCOL_AT : _PROTOCOL_AT + 1] == _UDP:
            yield frame


_UDP = bytes((PROTOCOL_UDP,))
