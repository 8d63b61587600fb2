"""Transport checksums that the sender's kernel left to hardware.

A frame that comes from a local socket over a veth pair carries, in place of its TCP or UDP
checksum, the sum of the pseudo header only (CHECKSUM_PARTIAL): a network card would finish it, and
no card is there. A switch that forwards it as it is sends garbage: ping works, UDP and TCP do not.
"""

from __future__ import annotations

from softswitch.ports.interface import ETHERNET_HEADER, VLAN_TAG

_VLAN_TYPES = (0x8100, 0x88A8)
_IPV4, _IPV6 = 0x0800, 0x86DD
_IPV6_HEADER = 40
_FIELD = {6: 16, 17: 6}
"""By IP protocol (TCP, UDP): where the checksum lies in the transport header."""

_IPV6_OPTIONS = frozenset({0, 43, 60})
"""Extension headers that may stand in front of the transport: hop-by-hop, routing, destination."""


def finished(frame: bytes) -> bytes:
    """Return `frame` with its TCP or UDP checksum complete (RFC 1071).

    The field must hold the sum over the pseudo header. A frame in which no transport header is
    found comes back as it is.
    """
    found = _transport(frame)
    if found is None:
        return frame
    start, end, field = found
    if field + 2 > end or end > len(frame):
        return frame
    total = _sum(frame[start:end])
    checksum = ~total & 0xFFFF or 0xFFFF
    return frame[:field] + checksum.to_bytes(2, "big") + frame[field + 2 :]


def _sum(data: bytes) -> int:
    """Return the ones' complement sum of 16-bit words: the value modulo 2^16 - 1, 0 only for 0."""
    if len(data) % 2:
        data += b"\0"
    value = int.from_bytes(data, "big")
    return value % 0xFFFF or (0xFFFF if value else 0)


def _transport(frame: bytes) -> tuple[int, int, int] | None:
    """Return where the transport header starts, where its packet ends, where its checksum is."""
    at = ETHERNET_HEADER
    ether_type = int.from_bytes(frame[at - 2 : at], "big")
    while ether_type in _VLAN_TYPES:
        at += VLAN_TAG
        ether_type = int.from_bytes(frame[at - 2 : at], "big")
    if ether_type == _IPV4 and len(frame) >= at + 20:
        start = at + (frame[at] & 15) * 4
        end = at + int.from_bytes(frame[at + 2 : at + 4], "big")
        protocol = frame[at + 9]
    elif ether_type == _IPV6 and len(frame) >= at + _IPV6_HEADER:
        start = at + _IPV6_HEADER
        end = start + int.from_bytes(frame[at + 4 : at + 6], "big")
        protocol = frame[at + 6]
        while protocol in _IPV6_OPTIONS and len(frame) >= start + 2:
            protocol, start = frame[start], start + (frame[start + 1] + 1) * 8
    else:
        return None
    offset = _FIELD.get(protocol)
    return None if offset is None else (start, end, start + offset)
