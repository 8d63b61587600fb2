"""Malformed messages: each ends in one outcome, nothing leaves, and no slot changes.

Every test brings one source into a slot, sends what is malformed for the other, and completes the
chunk: with values x1 and x3 in one slot, so that a trace of either would show in the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from p4src.constants import AGG_UDP_PORT, AGG_VERSION, LANES, Kind, Outcome
from tests.packet.program import (
    PARENT_PORT,
    SHORTEST_FRAME,
    WORKERS,
    BluetreeSwitch,
    Job,
)
from tests.packet.program_frames import (
    answer,
    contribution,
    fanned_out,
    lanes,
    remade,
    sum_to_parent,
    summed,
    to_parent,
    with_options,
)
from tests.packet.targets import Target
from traffic.wire import Aggregation

JOB = Job(sources=WORKERS[:2])
FIRST, SECOND = JOB.sources


@pytest.fixture
def switch(target: Target) -> BluetreeSwitch:
    """The shipped program, blue for JOB."""
    return BluetreeSwitch(target, JOB)


def refused(
    switch: BluetreeSwitch,
    outcome: Outcome,
    frames: Callable[[bytes], Iterable[bytes]],
    port: int = SECOND.port,
    *,
    one_by_one: bool = False,
) -> None:
    """Each of `frames(a contribution of SECOND)` must end in `outcome` and harm no slot."""
    for factor, chunk in ((1, 0), (3, JOB.window)):
        start = contribution(FIRST, chunk, lanes(1, factor))
        switch.check(FIRST.port, start, Outcome.ABSORBED)
        arriving = [(port, frame) for frame in frames(contribution(SECOND, chunk, lanes(9)))]
        for batch in ([one] for one in arriving) if one_by_one else [arriving]:
            switch.check_all(batch, {outcome: len(batch)})
        frame = contribution(SECOND, chunk, lanes(2, factor))
        leaving = sum_to_parent(frame, JOB, summed(lanes(1, factor), lanes(2, factor)))
        switch.check(SECOND.port, frame, Outcome.EMITTED, leaving)


def with_ipv4(frame: bytes, **fields: int) -> bytes:
    """The frame with other values in its IPv4 header, and the right checksum for them."""
    packet = Ether(frame)
    for name, value in fields.items():
        packet[IP].setfieldval(name, value)
    return remade(packet)


def with_udp(frame: bytes, length: int) -> bytes:
    """The frame with another UDP length, and no UDP checksum."""
    packet = Ether(frame)
    packet[UDP].len, packet[UDP].chksum = length, 0
    return remade(packet)


def with_aggregation(frame: bytes, **fields: int) -> bytes:
    """The frame with other values in its aggregation header, and no UDP checksum."""
    packet = Ether(frame)
    packet[UDP].chksum = 0
    for name, value in fields.items():
        packet[Aggregation].setfieldval(name, value)
    return remade(packet)


def with_payload(frame: bytes, payload: bytes) -> bytes:
    """The frame with another UDP payload, all lengths and checksums right."""
    packet = Ether(frame)
    packet[UDP].remove_payload()
    for name in ("len", "chksum"):
        packet[UDP].delfieldval(name)
    return remade(packet / payload, ("len",))


@pytest.mark.parametrize("words", [0, 1, 10])
def test_a_contribution_cut_short_anywhere(switch: BluetreeSwitch, words: int) -> None:
    shortest = SHORTEST_FRAME[switch.target.kind]

    def cut(frame: bytes) -> list[bytes]:
        whole = with_options(frame, words) if words else frame
        assert len(whole) == 190 + 4 * words
        return [whole[:length] for length in range(shortest, len(whole))]

    refused(switch, Outcome.MALFORMED, cut, one_by_one=True)


@pytest.mark.parametrize("values", [lanes(9), None], ids=["result", "acknowledgement"])
def test_an_answer_cut_short_anywhere(
    switch: BluetreeSwitch, values: tuple[int, ...] | None
) -> None:
    whole = answer(0, values)
    cut = [whole[:length] for length in range(SHORTEST_FRAME[switch.target.kind], len(whole))]
    refused(switch, Outcome.MALFORMED, lambda _: cut, PARENT_PORT)


def test_a_contribution_cut_short_and_padded(switch: BluetreeSwitch) -> None:
    """Its lengths are right for what is left of it: the rest is Ethernet's padding."""

    def cut(frame: bytes) -> list[bytes]:
        payload = frame[42:]
        return [with_payload(frame, payload[:n]) + payload[n:] for n in range(len(payload))]

    refused(switch, Outcome.MALFORMED, cut)


def test_a_payload_longer_than_a_message(switch: BluetreeSwitch) -> None:
    refused(
        switch,
        Outcome.MALFORMED,
        lambda frame: [with_payload(frame, frame[42:] + bytes(n)) for n in (1, 2, 4, 128, 1000)],
    )


def test_wrong_udp_length(switch: BluetreeSwitch) -> None:
    right = 8 + 20 + 4 * LANES
    wrong = (0, 7, 8, 27, 28, right - 4, right - 1, right + 1, right + 4, 2**16 - 20, 2**16 - 1)
    refused(switch, Outcome.MALFORMED, lambda frame: [with_udp(frame, n) for n in wrong])


def test_wrong_ipv4_length(switch: BluetreeSwitch) -> None:
    right = 20 + 8 + 20 + 4 * LANES
    wrong = (0, 19, 20, 28, 48, right - 1, right + 1, right + 4, 1500, 2**16 - 1)
    refused(switch, Outcome.MALFORMED, lambda frame: [with_ipv4(frame, len=n) for n in wrong])


def test_lengths_that_agree_but_are_no_messages(switch: BluetreeSwitch) -> None:
    """IPv4 and UDP length wrong by as much; up to 64 KiB that the frame has not."""

    def both(frame: bytes) -> list[bytes]:
        return [
            with_ipv4(with_udp(frame, 156 + n), len=176 + n)
            for n in (-156, -149, -148, -128, -4, -1, 1, 4, 1324, 2**16 - 1 - 176)
        ]

    refused(switch, Outcome.MALFORMED, both)


def test_ipv4_length_shorter_than_the_header(switch: BluetreeSwitch) -> None:
    refused(
        switch,
        Outcome.MALFORMED,
        lambda frame: [
            with_ipv4(with_options(frame, words), len=length)
            for words in (1, 10)
            for length in (0, 20, 19 + 4 * words)
        ],
    )


def test_another_ip_version(switch: BluetreeSwitch) -> None:
    others = [version for version in range(16) if version != 4]
    refused(switch, Outcome.MALFORMED, lambda frame: [with_ipv4(frame, version=n) for n in others])


def test_header_length_below_five_words(switch: BluetreeSwitch) -> None:
    def short(frame: bytes) -> list[bytes]:
        return [with_ipv4(frame, ihl=words) for words in range(5)]

    refused(switch, Outcome.MALFORMED, short)


def test_header_length_beyond_the_packet(switch: BluetreeSwitch) -> None:
    """The header says more words than came: whatever the packet carried before it was cut."""

    def beyond(frame: bytes) -> list[bytes]:
        return [
            with_ipv4(frame, ihl=words)[: 14 + length]
            for words in range(6, 16)
            for length in (20, 20 + 4 * (words - 5) - 1)
        ]

    refused(switch, Outcome.MALFORMED, beyond)


def test_header_length_that_swallows_the_message(switch: BluetreeSwitch) -> None:
    """UDP and lanes read as options: whatever it becomes, it is no contribution."""
    for factor, chunk in ((1, 0), (3, JOB.window)):
        start = contribution(FIRST, chunk, lanes(1, factor))
        switch.check(FIRST.port, start, Outcome.ABSORBED)
        for words in range(6, 16):
            frame = with_ipv4(contribution(SECOND, chunk, lanes(9)), ihl=words)
            assert switch.target.exchange(SECOND.port, frame) == []
            counted = switch.outcomes()
            assert sum(counted.values()) == 1
            assert set(counted) <= {Outcome.MALFORMED, Outcome.BAD_CHECKSUM, Outcome.NO_ROUTE}
        frame = contribution(SECOND, chunk, lanes(2, factor))
        leaving = sum_to_parent(frame, JOB, summed(lanes(1, factor), lanes(2, factor)))
        switch.check(SECOND.port, frame, Outcome.EMITTED, leaving)


def test_another_version_of_the_protocol(switch: BluetreeSwitch) -> None:
    others = [version for version in range(256) if version != AGG_VERSION]
    refused(
        switch,
        Outcome.MALFORMED,
        lambda frame: [with_aggregation(frame, version=version) for version in others],
    )


def test_another_lane_count(switch: BluetreeSwitch) -> None:
    others = [count for count in range(256) if count != LANES]
    refused(
        switch,
        Outcome.MALFORMED,
        lambda frame: [with_aggregation(frame, lane_count=count) for count in others],
    )


def test_an_acknowledgement_says_the_lane_count_too(switch: BluetreeSwitch) -> None:
    wrong = [with_aggregation(answer(0, None), lane_count=count) for count in (0, 1, 31, 33, 64)]
    refused(switch, Outcome.MALFORMED, lambda _: wrong, PARENT_PORT)


def test_other_traffic_may_not_use_the_port(switch: BluetreeSwitch) -> None:
    """From it as well: what comes from there could be taken for an answer."""
    ether = Ether(src="02:00:00:00:00:02", dst="02:01:00:00:00:01")
    frames = [
        bytes(ether / IP(src="10.0.0.2", dst="10.0.0.6") / UDP(sport=src, dport=dst) / Raw(payload))
        for src, dst in ((AGG_UDP_PORT, 9591), (40_000, AGG_UDP_PORT))
        for payload in (b"", bytes(20), bytes(148))
    ]
    refused(switch, Outcome.MALFORMED, lambda _: frames)


@pytest.mark.parametrize("port", [FIRST.port, SECOND.port, PARENT_PORT])
def test_unknown_kinds(switch: BluetreeSwitch, port: int) -> None:
    """With lanes and without: a kind that nobody knows has no length of its own."""
    others = [kind for kind in range(256) if kind not in set(Kind)]

    def unknown(frame: bytes) -> list[bytes]:
        return [
            with_aggregation(whole, kind=kind)
            for kind in (*others[:8], *others[-8:])
            for whole in (frame, with_payload(frame, frame[42:62]))
        ]

    refused(switch, Outcome.UNKNOWN_KIND, unknown, port)


@pytest.mark.parametrize("port", [SECOND.port, PARENT_PORT])
def test_kinds_under_each_others_length(switch: BluetreeSwitch, port: int) -> None:
    """A contribution without lanes, a result without, an acknowledgement with them."""

    def exchanged(frame: bytes) -> list[bytes]:
        without = with_payload(frame, frame[42:62])
        return [
            with_aggregation(without, kind=Kind.CONTRIBUTE),
            with_aggregation(without, kind=Kind.RESULT),
            with_aggregation(frame, kind=Kind.ACK),
        ]

    refused(switch, Outcome.MALFORMED, exchanged, port)


@pytest.mark.parametrize("trailer", [b"\0", b"\0" * 46, b"\xff" * 3, bytes(range(200))])
def test_bytes_behind_the_datagram_stay_behind_it(switch: BluetreeSwitch, trailer: bytes) -> None:
    """Ethernet padding is no part of the message. It leaves with the frame that it came with."""
    for factor, chunk in ((1, 0), (3, JOB.window)):
        start = contribution(FIRST, chunk, lanes(1, factor)) + trailer
        switch.check(FIRST.port, start, Outcome.ABSORBED)
        last = contribution(SECOND, chunk, lanes(2, factor))
        port, out = sum_to_parent(last, JOB, summed(lanes(1, factor), lanes(2, factor)))
        switch.check(SECOND.port, last + trailer, Outcome.EMITTED, (port, out + trailer))
    port, out = to_parent(contribution(FIRST, JOB.window + 1, lanes(1), epoch=9))
    frame = contribution(FIRST, JOB.window + 1, lanes(1), epoch=9) + trailer
    switch.check(FIRST.port, frame, Outcome.FORWARDED, (port, out + trailer))
    for values in (lanes(1), None):
        whole = answer(0, values)
        copies = [(port, out + trailer) for port, out in fanned_out(whole, JOB.sources)]
        switch.check_all([(PARENT_PORT, whole + trailer)], {Outcome.FANNED_OUT: 1}, copies)
