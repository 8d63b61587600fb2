"""What the kernel says of a network interface, and its constants that Python does not carry."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass

from softswitch.ports.errors import PortError

# <linux/if_packet.h>
SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP = 1
PACKET_RX_RING = 5
PACKET_STATISTICS = 6
PACKET_VERSION = 10
PACKET_IGNORE_OUTGOING = 23
PACKET_MR_PROMISC = 1
TPACKET_V2 = 1
TP_STATUS_USER = 1 << 0
TP_STATUS_CSUMNOTREADY = 1 << 3
TP_STATUS_VLAN_VALID = 1 << 4
TP_STATUS_VLAN_TPID_VALID = 1 << 6

# <linux/if_ether.h>
ETH_P_ALL = 3
ETH_P_8021Q = 0x8100
ETHERNET_HEADER = 14
VLAN_TAG = 4

# <linux/sockios.h>, <linux/ethtool.h>, <linux/if.h>
_SIOCGIFFLAGS = 0x8913
_SIOCGIFMTU = 0x8921
_SIOCETHTOOL = 0x8946
_ETHTOOL_GTXCSUM = 0x16
_ETHTOOL_SET_OFFLOADS = (0x15, 0x17, 0x19, 0x1F, 0x24, 0x2C)
"""ETHTOOL_SRXCSUM, STXCSUM, SSG, STSO, SGSO, SGRO."""

IFF_UP = 1
IFF_RUNNING = 0x40


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface as it was when looked at; `mtu` in bytes, without the Ethernet header.

    `is_up`: somebody set it up. `works`: it has a carrier besides, so that frames leave.
    `offloads_checksums`: the kernel leaves transport checksums of frames from here to hardware.
    On a veth pair that is the peer's business too, and no hardware is there to do it.
    """

    name: str
    index: int
    mtu: int
    is_up: bool
    offloads_checksums: bool
    works: bool

    @classmethod
    def look_at(cls, name: str) -> Interface:
        """Ask the kernel; raises PortError where there is no such interface."""
        try:
            index = socket.if_nametoindex(name)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                mtu = struct.unpack_from("=i", _ask(sock, _SIOCGIFMTU, name), 16)[0]
                flags = struct.unpack_from("=h", _ask(sock, _SIOCGIFFLAGS, name), 16)[0]
                offloads = _ethtool(sock, name, _ETHTOOL_GTXCSUM)
        except OSError as error:
            raise PortError(
                f"there is no interface {name}: make it first, as with `ip link add {name} "
                f"type veth peer name ...` ({error})"
            ) from error
        works = flags & (IFF_UP | IFF_RUNNING) == IFF_UP | IFF_RUNNING
        return cls(name, index, mtu, bool(flags & IFF_UP), offloads, works)


def _ask(sock: socket.socket, what: int, name: str) -> bytes:
    return fcntl.ioctl(sock, what, struct.pack("16s24x", name.encode()))


def disable_offloads(name: str) -> None:
    """Do what ``ethtool -K NAME rx off tx off sg off tso off gso off gro off`` does.

    Raises OSError without the right to.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for what in _ETHTOOL_SET_OFFLOADS:
            _ethtool(sock, name, what)


def _ethtool(sock: socket.socket, name: str, what: int) -> bool:
    """Get a feature of the interface, or set it to 0; one that it knows nothing of it lacks."""
    value = ctypes.create_string_buffer(struct.pack("=II", what, 0))
    request = struct.pack("16sP16x", name.encode(), ctypes.addressof(value))
    try:
        fcntl.ioctl(sock, _SIOCETHTOOL, request)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return False
        raise
    return any(value.raw[4:8])


def open_socket(name: str) -> socket.socket:
    """Open a raw packet socket that is not bound yet; raises PortError without the right to."""
    try:
        return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError as error:
        raise PortError(
            f"interface {name} needs a raw socket: run as root, or give CAP_NET_RAW "
            f"(now user {os.geteuid()})"
        ) from error
