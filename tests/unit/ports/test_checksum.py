"""Checksums that were left to hardware, against scapy's."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP, IPOption
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from softswitch.ports.checksum import finished

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
"""Both given: scapy would ask the network for the one left out."""

HEADS = {
    "IPv4": lambda: ETHER / IP(src="10.0.0.1", dst="10.0.0.2"),
    "IPv4 with options": lambda: (
        ETHER / IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption(b"\x94\4\0\0")])
    ),
    "IPv4 in a VLAN": lambda: ETHER / Dot1Q(vlan=5) / IP(src="10.0.0.1", dst="10.0.0.2"),
    "IPv6": lambda: ETHER / IPv6(src="2001:db8::1", dst="2001:db8::2"),
    "IPv6 with an extension": lambda: (
        ETHER / IPv6(src="2001:db8::1", dst="2001:db8::2") / IPv6ExtHdrDestOpt()
    ),
}


def pseudo_sum(packet: Packet, length: int, protocol: int) -> int:
    """What a kernel leaves in the checksum field: the sum of the pseudo header (RFC 9293, 3.1)."""
    inner = packet[IP] if IP in packet else packet[IPv6]
    family = 4 if IP in packet else 6
    address = ipaddress.IPv4Address if family == 4 else ipaddress.IPv6Address
    words = address(inner.src).packed + address(inner.dst).packed
    total = int.from_bytes(words, "big") + length + protocol
    return total % 0xFFFF or 0xFFFF


@pytest.mark.parametrize("transport", [UDP, TCP])
@pytest.mark.parametrize("head", HEADS)
@given(payload=st.binary(max_size=40), padding=st.binary(max_size=5))
def test_they_are_those_of_scapy(
    head: str, transport: type[Packet], payload: bytes, padding: bytes
) -> None:
    packet = HEADS[head]() / transport(sport=1, dport=2) / Raw(payload)
    right = bytes(packet)
    length = len(bytes(Ether(right)[transport]))
    partial = Ether(right)
    partial[transport].chksum = pseudo_sum(partial, length, 17 if transport is UDP else 6)
    assert finished(bytes(partial) + padding) == right + padding


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(14),
        bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2", proto=1)),
        bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP())[:38],
        bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2", len=2000) / UDP()),
        bytes(ETHER / Dot1Q()),
        bytes(ETHER / IPv6(src="2001:db8::1", dst="2001:db8::2", nh=60))[:54],
    ],
)
def test_a_frame_without_a_transport_header_is_left_alone(frame: bytes) -> None:
    assert finished(frame) == frame


@given(st.binary(max_size=80))
def test_no_frame_is_too_strange(frame: bytes) -> None:
    assert len(finished(frame)) == len(frame)
