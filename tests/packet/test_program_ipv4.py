"""Ordinary IPv4 traffic beside the jobs, and what is not IPv4 at all."""

from __future__ import annotations

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6ND_RS, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

from p4src.constants import AGG_UDP_PORT, Flag, Outcome
from tests.packet.program import (
    IDLE_PORT,
    PARENT_MAC,
    PARENT_PORT,
    WORKERS,
    BluetreeSwitch,
    Job,
    route,
)
from tests.packet.program_frames import (
    DESTINATION_IP,
    contribution,
    is_sound,
    lanes,
    remade,
    routed,
    sum_to_parent,
    summed,
    to_parent,
    with_options,
)
from tests.packet.targets import PORTS, Target

JOB = Job(sources=WORKERS[:2])
FIRST, SECOND = JOB.sources
HOST = WORKERS[4]
PAYLOAD = bytes(range(100))


@pytest.fixture
def switch(target: Target) -> BluetreeSwitch:
    """JOB, blue, and routes to one worker and the destination."""
    switch = BluetreeSwitch(target, JOB)
    target.insert(
        route(HOST.address, 32, HOST.port, HOST.mac),
        route(0x0AFF_FF01, 32, PARENT_PORT, PARENT_MAC),
    )
    return switch


def packet(*layers: Packet, dst: str = HOST.ip, ttl: int = 64, **fields: int | str) -> bytes:
    """An IPv4 packet from the first worker."""
    header = IP(src=FIRST.ip, dst=dst, ttl=ttl)
    for name, value in fields.items():
        header.setfieldval(name, value)
    built = Ether(src="02:00:00:00:00:02", dst="02:01:00:00:00:01") / header
    for layer in layers:
        built /= layer
    return bytes(built)


def to_host(frame: bytes) -> tuple[int, bytes]:
    """The frame as it is routed to HOST."""
    return routed(frame, HOST.port, HOST.mac)


ORDINARY = {
    "ping": packet(ICMP(id=1, seq=1), Raw(PAYLOAD)),
    "TCP": packet(TCP(sport=40_000, dport=22, flags="S")),
    "TCP to the port of the jobs": packet(TCP(dport=AGG_UDP_PORT), Raw(PAYLOAD)),
    "UDP": packet(UDP(sport=40_000, dport=53), Raw(PAYLOAD)),
    "UDP below the port": packet(UDP(dport=AGG_UDP_PORT - 1), Raw(PAYLOAD)),
    "UDP above the port": packet(UDP(dport=AGG_UDP_PORT + 1), Raw(PAYLOAD)),
    "UDP from below the port": packet(UDP(sport=AGG_UDP_PORT - 1, dport=9591), Raw(PAYLOAD)),
    "UDP from above the port": packet(UDP(sport=AGG_UDP_PORT + 1, dport=9591), Raw(PAYLOAD)),
    "UDP without payload": packet(UDP(dport=53)),
    "another protocol": packet(Raw(PAYLOAD), proto=253),
    "no payload": packet(proto=253),
    "largest": packet(Raw(bytes(1480)), proto=253),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_traffic_is_routed(switch: BluetreeSwitch, name: str) -> None:
    frame = ORDINARY[name]
    assert is_sound(to_host(frame)[1])
    switch.check(FIRST.port, frame, Outcome.ROUTED, to_host(frame))


def test_every_port_may_send_ordinary_traffic(switch: BluetreeSwitch) -> None:
    frame = ORDINARY["ping"]
    for port in PORTS:
        switch.check(port, frame, Outcome.ROUTED, to_host(frame))


def test_fields_of_the_header_are_carried(switch: BluetreeSwitch) -> None:
    for fields in (
        {"tos": 0xB8},
        {"id": 0xFFFF},
        {"flags": "evil"},
        {"flags": "DF"},
        {"tos": 3, "id": 0x8000, "flags": "evil+DF"},
    ):
        frame = packet(UDP(dport=53), Raw(PAYLOAD), **fields)
        switch.check(FIRST.port, frame, Outcome.ROUTED, to_host(frame))


def test_the_longest_prefix_wins(target: Target) -> None:
    switch = BluetreeSwitch(target)
    ports = {0: 1, 8: 2, 16: 3, 24: 4, 31: 5, 32: 6}
    for length, port in ports.items():
        mask = (2**32 - 1) ^ (2 ** (32 - length) - 1)
        target.insert(route(0x0A01_0203 & mask, length, port, 0x0200 + length))
    for address, length in {
        "10.1.2.3": 32,
        "10.1.2.2": 31,
        "10.1.2.4": 24,
        "10.1.3.3": 16,
        "10.2.2.3": 8,
        "11.1.2.3": 0,
        "255.255.255.255": 0,
        "239.1.2.3": 0,
    }.items():
        frame = packet(ICMP(), dst=address)
        leaving = routed(frame, ports[length], 0x0200 + length)
        switch.check(IDLE_PORT, frame, Outcome.ROUTED, leaving)


def test_without_a_route_nothing_leaves(switch: BluetreeSwitch) -> None:
    for address in ("10.0.0.7", "10.0.0.5", "0.0.0.0", "255.255.255.255", "224.0.0.1"):
        switch.check(FIRST.port, packet(ICMP(), dst=address), Outcome.NO_ROUTE)


def test_a_packet_ages(switch: BluetreeSwitch) -> None:
    for ttl in (2, 3, 128, 255):
        frame = packet(ICMP(), ttl=ttl)
        assert Ether(to_host(frame)[1])[IP].ttl == ttl - 1
        switch.check(FIRST.port, frame, Outcome.ROUTED, to_host(frame))
    for ttl in (0, 1):
        switch.check(FIRST.port, packet(ICMP(), ttl=ttl), Outcome.TTL_EXPIRED)


@pytest.mark.parametrize("words", [0, 1, 10])
def test_lengths_that_cannot_be_are_malformed(switch: BluetreeSwitch, words: int) -> None:
    """A header shorter than five words, a packet shorter than its header, a cut header."""
    frame = with_options(ORDINARY["ping"], words) if words else ORDINARY["ping"]
    header = 20 + 4 * words
    for length in (0, 1, 19, 20, header - 1):
        if length < header:
            impossible = Ether(frame)
            impossible[IP].len = length
            switch.check(FIRST.port, remade(impossible), Outcome.MALFORMED)
    for ihl in range(5):
        impossible = Ether(frame)
        impossible[IP].ihl = ihl
        switch.check(FIRST.port, remade(impossible), Outcome.MALFORMED)
    for length in (14, 33, 14 + header - 1):
        switch.check(FIRST.port, frame[:length], Outcome.MALFORMED)
    bare = Ether(frame)
    bare[IP].len = header
    whole = remade(bare)
    switch.check(FIRST.port, whole, Outcome.ROUTED, to_host(whole))


def test_a_cut_udp_header_is_malformed(switch: BluetreeSwitch) -> None:
    frame = ORDINARY["UDP"]
    for length in range(8):
        switch.check(FIRST.port, frame[: 34 + length], Outcome.MALFORMED)
    switch.check(FIRST.port, frame[:42], Outcome.ROUTED, (HOST.port, to_host(frame)[1][:42]))


def complete(switch: BluetreeSwitch, chunk: int, factor: int) -> None:
    """Finish a chunk that FIRST is in; the sum must be right."""
    frame = contribution(SECOND, chunk, lanes(2, factor))
    leaving = sum_to_parent(frame, JOB, summed(lanes(1, factor), lanes(2, factor)))
    switch.check(SECOND.port, frame, Outcome.EMITTED, leaving)


def aged(frame: bytes, ttl: int) -> bytes:
    """The frame with another TTL."""
    changed = Ether(frame)
    changed[IP].ttl = ttl
    return remade(changed)


def test_a_contribution_ages(switch: BluetreeSwitch) -> None:
    for factor, chunk in ((1, 0), (3, JOB.window)):
        start = contribution(FIRST, chunk, lanes(1, factor))
        switch.check(FIRST.port, start, Outcome.ABSORBED)
        for ttl in (0, 1):
            for flags in (0, Flag.DIRECT):
                old = aged(contribution(SECOND, chunk, lanes(9), flags=flags), ttl)
                switch.check(SECOND.port, old, Outcome.TTL_EXPIRED)
        frame = aged(contribution(SECOND, chunk, lanes(2, factor)), 2)
        leaving = sum_to_parent(frame, JOB, summed(lanes(1, factor), lanes(2, factor)))
        assert Ether(leaving[1])[IP].ttl == 1
        switch.check(SECOND.port, frame, Outcome.EMITTED, leaving)


@pytest.mark.parametrize("words", [0, 1, 10])
def test_every_wrong_bit_of_the_header_is_found(switch: BluetreeSwitch, words: int) -> None:
    """One bit of an IPv4 header is wrong: checksum or parser finds it, and no slot sees it."""
    for factor, chunk in ((1, 0), (3, JOB.window)):
        start = contribution(FIRST, chunk, lanes(1, factor))
        switch.check(FIRST.port, start, Outcome.ABSORBED)
        frame = contribution(SECOND, chunk, lanes(9))
        if words:
            frame = with_options(frame, words)
        for bit in range(14 * 8, (34 + 4 * words) * 8):
            harmed = bytearray(frame)
            harmed[bit // 8] ^= 0x80 >> bit % 8
            switch.target.send(SECOND.port, bytes(harmed))
        assert switch.target.collect() == []
        counted = switch.outcomes()
        assert set(counted) <= {Outcome.BAD_CHECKSUM, Outcome.MALFORMED}
        assert sum(counted.values()) == (20 + 4 * words) * 8
        # Of version, header length and total length at most: 4 + 4 + 16 bits.
        assert counted.get(Outcome.MALFORMED, 0) <= 24
        complete(switch, chunk, factor)


def test_a_checksum_of_zero_is_a_checksum(switch: BluetreeSwitch) -> None:
    """The identification is chosen so that the sum of the header comes to 0, and to 0 behind."""
    for ttl in (64, 65):
        plain = Ether(packet(ICMP(), Raw(PAYLOAD), id=0, ttl=ttl))
        number = plain[IP].chksum
        frame = packet(ICMP(), Raw(PAYLOAD), id=number, ttl=64)
        assert Ether(frame)[IP].chksum == (0 if ttl == 64 else 0x0100)
        assert is_sound(to_host(frame)[1])
        switch.check(FIRST.port, frame, Outcome.ROUTED, to_host(frame))
        zeroed = bytearray(packet(ICMP(), Raw(PAYLOAD), id=number ^ 1))
        zeroed[24:26] = bytes(2)
        switch.check(FIRST.port, bytes(zeroed), Outcome.BAD_CHECKSUM)


@pytest.mark.parametrize(
    ("flags", "offset"),
    [
        pytest.param("MF", 0, id="first"),
        pytest.param("MF", 10, id="middle"),
        pytest.param(0, 10, id="last"),
        pytest.param(0, 2**13 - 1, id="farthest"),
        pytest.param("MF+DF", 0, id="first that forbids it"),
    ],
)
def test_fragments_are_routed_and_touch_no_slot(
    switch: BluetreeSwitch, flags: str | int, offset: int
) -> None:
    for factor, chunk in ((1, 0), (3, JOB.window)):
        start = contribution(FIRST, chunk, lanes(1, factor))
        switch.check(FIRST.port, start, Outcome.ABSORBED)
        fragment = Ether(contribution(SECOND, chunk, lanes(9)))
        fragment[IP].flags, fragment[IP].frag = flags, offset
        frame = remade(fragment)
        leaving = routed(frame, PARENT_PORT, PARENT_MAC)
        switch.check(SECOND.port, frame, Outcome.ROUTED, leaving)
        short = frame[:44]
        switch.check(SECOND.port, short, Outcome.ROUTED, (PARENT_PORT, leaving[1][:44]))
        complete(switch, chunk, factor)
    assert switch.messages() == (2, 0)


def test_a_message_with_the_reserved_bit_is_a_message(switch: BluetreeSwitch) -> None:
    """RFC 3514 aside, the bit above "don't fragment" makes no fragment."""
    changed = Ether(contribution(FIRST, 0, lanes(1), flags=Flag.DIRECT))
    changed[IP].flags = "evil+DF"
    frame = remade(changed)
    switch.check(FIRST.port, frame, Outcome.FORWARDED_MARKED, to_parent(frame))


@pytest.mark.parametrize("words", range(1, 11))
def test_options_of_ordinary_packets_are_carried(switch: BluetreeSwitch, words: int) -> None:
    for name in ("ping", "TCP", "UDP", "no payload"):
        frame = with_options(ORDINARY[name], words)
        assert frame[14] == 0x45 + words
        assert is_sound(to_host(frame)[1])
        switch.check(FIRST.port, frame, Outcome.ROUTED, to_host(frame))


@pytest.mark.parametrize("words", range(1, 11))
def test_options_of_contributions_are_carried(switch: BluetreeSwitch, words: int) -> None:
    """Verified, and computed anew behind: red, late, summed; the last message's own leave."""
    for factor, chunk in ((1, JOB.window), (3, 2 * JOB.window)):
        marked = with_options(contribution(FIRST, chunk, lanes(1), flags=Flag.DIRECT), words)
        switch.check(FIRST.port, marked, Outcome.FORWARDED_MARKED, to_parent(marked))
        start = with_options(contribution(FIRST, chunk, lanes(1, factor)), 11 - words)
        switch.check(FIRST.port, start, Outcome.ABSORBED)
        late = with_options(contribution(SECOND, chunk - JOB.window, lanes(9)), words)
        leaving = to_parent(late, flags=Flag.LATE)
        switch.check(SECOND.port, late, Outcome.FORWARDED_LATE, leaving)
        frame = with_options(contribution(SECOND, chunk, lanes(2, factor)), words)
        leaving = sum_to_parent(frame, JOB, summed(lanes(1, factor), lanes(2, factor)))
        assert is_sound(leaving[1])
        switch.check(SECOND.port, frame, Outcome.EMITTED, leaving)


def test_what_is_not_ipv4_is_dropped_and_counted_nowhere_else(switch: BluetreeSwitch) -> None:
    ether = Ether(src="02:00:00:00:00:02", dst="ff:ff:ff:ff:ff:ff")
    inner = Ether(contribution(FIRST, 0, lanes(9)))[IP]
    strange = [
        bytes(ether / ARP(psrc=FIRST.ip, pdst=DESTINATION_IP)),
        bytes(ether / IPv6(src="fe80::2", dst="ff02::2") / ICMPv6ND_RS()),
        bytes(ether / Dot1Q(vlan=7) / inner),
        bytes(Ether(src="02:00:00:00:00:02", dst="01:80:c2:00:00:0e", type=0x88CC) / Raw(PAYLOAD)),
        bytes(Ether(type=0x0801) / inner),
        bytes(Ether(type=0x0700) / inner),
        bytes(Ether(type=0) / inner),
    ]
    for port in PORTS:
        for frame in strange:
            switch.check(port, frame, Outcome.NOT_IPV4)
    assert switch.messages() == (0, 0)
