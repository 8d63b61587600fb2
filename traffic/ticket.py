"""The ticketer: writes into tensor packets which layer of the model they carry.

    frame = add_ticket(frame, Ticket(layer=3, iteration=17))
    read_ticket(frame)                         # Ticket(layer=3, iteration=17), or None

A ticket is two IPv4 options of 4 bytes, kinds 158 and 222: number 30, which RFC 4727 leaves to
experiments, in either class, copied into fragments. Each is kind, length 4 and 16 bits; together
they are two words, so options beside them keep their alignment. docs/protocol.md says what a switch
makes of them. The frame may be any IPv4 packet: a message of a job, or plain UDP traffic of a
parameter server. `traffic.wire` has the options for scapy.
"""

import struct
from dataclasses import dataclass

from p4src.constants import OPTION_ITERATION, OPTION_LAYER, TICKET_BYTES
from traffic.errors import DecodeError, EncodeError, Refusal
from traffic.message import ETHERNET_BYTES, ETHERTYPE_IPV4, IPV4_BYTES, internet_checksum

TICKET_OPTIONS_BYTES = 2 * TICKET_BYTES
"""What a ticket adds to a frame."""

_OPTIONS = struct.Struct("!BBHBBH")
_END, _NO_OP = 0, 1
_MAX_HEADER_BYTES = 60
_VALUE_BITS = 16
_LENGTH, _CHECKSUM = 2, 10


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a tensor packet carries: 16 bits each; iterations begin again after 65,535."""

    layer: int
    iteration: int = 0

    def __post_init__(self) -> None:
        for name in ("layer", "iteration"):
            value = getattr(self, name)
            if not 0 <= value < 1 << _VALUE_BITS:
                raise EncodeError(f"{name} is {value}: a ticket holds {_VALUE_BITS} bits of it")

    def options(self) -> bytes:
        """The two IPv4 options, 8 bytes."""
        return _OPTIONS.pack(
            OPTION_LAYER, TICKET_BYTES, self.layer, OPTION_ITERATION, TICKET_BYTES, self.iteration
        )


def add_ticket(frame: bytes, ticket: Ticket) -> bytes:
    """The frame with a ticket before its other options, lengths and IPv4 checksum made right.

    The UDP checksum does not cover the IPv4 header and stays right. Raises DecodeError unless the
    frame is Ethernet with IPv4, EncodeError if its options leave no room for eight bytes more, or
    the packet would be longer than 65,535 bytes.
    """
    header_bytes = _header_bytes(frame)
    if header_bytes + TICKET_OPTIONS_BYTES > _MAX_HEADER_BYTES:
        raise EncodeError(
            f"{header_bytes - IPV4_BYTES} bytes of IPv4 options leave no room for a ticket's "
            f"{TICKET_OPTIONS_BYTES}: an IPv4 header has at most {_MAX_HEADER_BYTES} bytes"
        )
    fixed = bytearray(frame[ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES])
    fixed[0] += TICKET_OPTIONS_BYTES // 4
    length = int.from_bytes(fixed[_LENGTH : _LENGTH + 2], "big") + TICKET_OPTIONS_BYTES
    if length > 0xFFFF:
        raise EncodeError(f"an IPv4 packet of {length} bytes: it has at most 65535")
    fixed[_LENGTH : _LENGTH + 2] = length.to_bytes(2, "big")
    fixed[_CHECKSUM : _CHECKSUM + 2] = b"\0\0"
    others = frame[ETHERNET_BYTES + IPV4_BYTES : ETHERNET_BYTES + header_bytes]
    options = ticket.options()
    checksum = internet_checksum(bytes(fixed) + options + others)
    fixed[_CHECKSUM : _CHECKSUM + 2] = checksum.to_bytes(2, "big")
    return b"".join(
        (
            frame[:ETHERNET_BYTES],
            fixed,
            options,
            others,
            frame[ETHERNET_BYTES + header_bytes :],
        )
    )


def read_ticket(frame: bytes) -> Ticket | None:
    """The ticket that a switch finds in a frame, None if there is none or it is void.

    Raises DecodeError unless the frame is Ethernet with a whole IPv4 header.
    """
    header_bytes = _header_bytes(frame)
    left = frame[ETHERNET_BYTES + IPV4_BYTES : ETHERNET_BYTES + header_bytes]
    values: dict[int, int] = {}
    while left and left[0] != _END:
        if left[0] == _NO_OP:
            left = left[1:]
            continue
        length = left[1] if len(left) > 1 else 0
        if not 2 <= length <= len(left):
            return None
        if left[0] in (OPTION_LAYER, OPTION_ITERATION):
            if length != TICKET_BYTES:
                return None
            values[left[0]] = int.from_bytes(left[2:4], "big")
        left = left[length:]
    if OPTION_LAYER not in values:
        return None
    return Ticket(values[OPTION_LAYER], values.get(OPTION_ITERATION, 0))


def _header_bytes(frame: bytes) -> int:
    """Length of the IPv4 header, options included."""
    if len(frame) < ETHERNET_BYTES + IPV4_BYTES:
        raise DecodeError(Refusal.TRUNCATED, f"{len(frame)} bytes of Ethernet and IPv4")
    if frame[12:14] != ETHERTYPE_IPV4 or frame[ETHERNET_BYTES] >> 4 != 4:
        raise DecodeError(Refusal.NOT_IPV4, "no IPv4 packet in Ethernet")
    header_bytes = (frame[ETHERNET_BYTES] & 0x0F) * 4
    if header_bytes < IPV4_BYTES or len(frame) < ETHERNET_BYTES + header_bytes:
        raise DecodeError(Refusal.TRUNCATED, f"an IPv4 header of {header_bytes} bytes")
    return header_bytes
