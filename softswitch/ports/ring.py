"""Frames from an interface, by a ring of memory that the kernel shares (PACKET_RX_RING, version 2).

The kernel puts every frame into the next slot of the ring, with a header that says how long it is,
which VLAN tag was taken off, and whether its checksum is complete. Reading one is a look at
memory: no system call, one copy. When all slots are full the kernel drops and counts.
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
from dataclasses import dataclass

from softswitch.ports.checksum import finished
from softswitch.ports.errors import PortError
from softswitch.ports.interface import (
    ETH_P_8021Q,
    ETH_P_ALL,
    ETHERNET_HEADER,
    PACKET_ADD_MEMBERSHIP,
    PACKET_IGNORE_OUTGOING,
    PACKET_MR_PROMISC,
    PACKET_RX_RING,
    PACKET_STATISTICS,
    PACKET_VERSION,
    SOL_PACKET,
    TP_STATUS_CSUMNOTREADY,
    TP_STATUS_USER,
    TP_STATUS_VLAN_TPID_VALID,
    TP_STATUS_VLAN_VALID,
    TPACKET_V2,
    VLAN_TAG,
    Interface,
)

RING_BYTES = 2 * 1024 * 1024
"""Memory of a ring: 1024 frames of up to about 1900 bytes; that of bmv2's libpcap is as large."""

_MIN_SLOT = 2048
_MIN_SLOTS = 32
_MIN_BLOCK = 64 * 1024
_OVERHEAD = 128
"""Of a slot: the header of a frame, its address, alignment."""

_HEAD = struct.Struct("=IIIHH")
"""struct tpacket2_hdr: status, length on the wire, length here, where the frame starts, ..."""

_TAG_AT = 24
_TAG = struct.Struct("=HH")
"""The VLAN tag (TCI, TPID) in that header."""

_UNUSUAL = TP_STATUS_CSUMNOTREADY | TP_STATUS_VLAN_VALID
_MACS = 12


@dataclass(frozen=True, slots=True)
class RingView:
    """Where the ring is, for native code: `slots` of `slot` bytes from `address`, next at `at`."""

    address: int
    slot: int
    slots: int
    at: int


class Ring:
    """The receiving half of a port.

    After `receive`, `oversize` counts the frames that were longer than a slot, `unfinished` those
    whose checksum had to be completed, since the ring was opened.
    """

    def __init__(self, sock: socket.socket, interface: Interface, size: int = RING_BYTES) -> None:
        """Share a ring of `size` bytes for `sock` and bind it to `interface`; raises PortError."""
        self._slot = _power_of_two(
            max(_MIN_SLOT, interface.mtu + ETHERNET_HEADER + VLAN_TAG + _OVERHEAD)
        )
        self._slots = max(_MIN_SLOTS, size // self._slot)
        block = max(_MIN_BLOCK, self._slot)
        total = self._slot * self._slots
        request = struct.pack("=IIII", block, total // block, self._slot, self._slots)
        promiscuous = struct.pack("=iHH8s", interface.index, PACKET_MR_PROMISC, 0, b"")
        try:
            sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            sock.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
            self._memory = mmap.mmap(sock.fileno(), total)
            sock.bind((interface.name, ETH_P_ALL))
            sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, promiscuous)
        except OSError as error:
            raise PortError(f"cannot receive from {interface.name}: {error.strerror}") from error
        self._socket = sock
        self._bytes = memoryview(self._memory)
        self._words = self._bytes.cast("I")
        self._at = 0
        # the buffer object goes at once: it would keep the memory from being given back
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.oversize = 0
        self.unfinished = 0

    def receive(self, limit: int) -> list[bytes]:
        """Return the frames that are there, at most `limit`, oldest first."""
        memory, words, slot, at = self._memory, self._words, self._slot, self._at
        end = slot * self._slots
        head = _HEAD.unpack_from
        frames: list[bytes] = []
        while limit:
            status, length, here, start, _ = head(memory, at)
            if not status & TP_STATUS_USER:
                break
            limit -= 1
            if length == here:
                frame = memory[at + start : at + start + here]
                if status & _UNUSUAL:
                    frame = self._restored(frame, status, at)
                frames.append(frame)
            else:
                self.oversize += 1
            words[at >> 2] = 0  # the slot is the kernel's again
            at += slot
            if at == end:
                at = 0
        self._at = at
        return frames

    def view(self) -> RingView:
        """The ring for native code, which reads it in the place of `receive`."""
        return RingView(self._address, self._slot, self._slots, self._at)

    def moved(self, at: int) -> None:
        """Native code has read up to the slot at `at`."""
        self._at = at

    def dropped(self) -> int:
        """Return how many frames found the ring full since the last call."""
        value = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        drops: int = struct.unpack("=II", value)[1]
        return drops

    def close(self) -> None:
        """Give the memory back; the socket stays."""
        self._words.release()
        self._bytes.release()
        self._memory.close()

    def _restored(self, frame: bytes, status: int, at: int) -> bytes:
        """Return `frame` as a wire would have carried it: tag put back, checksum complete."""
        if status & TP_STATUS_CSUMNOTREADY:
            self.unfinished += 1
            frame = finished(frame)
        if status & TP_STATUS_VLAN_VALID:
            control, protocol = _TAG.unpack_from(self._memory, at + _TAG_AT)
            if not status & TP_STATUS_VLAN_TPID_VALID:
                protocol = ETH_P_8021Q
            tag = struct.pack(">HH", protocol, control)
            frame = frame[:_MACS] + tag + frame[_MACS:]
        return frame


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()
