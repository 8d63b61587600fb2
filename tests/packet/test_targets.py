"""The harness itself, on every target: what is sent comes out, and `collect` misses nothing."""

from __future__ import annotations

import pytest

from controller.p4rt import EntryRefusedError
from controller.program import CloneSession, MulticastGroup, Op, TableEntry, Update
from tests.packet.targets import PORTS, Target, by_port
from tests.packet.targets_sentinels import probe, probe_sentinel

DST = 0x02_00_00_00_00_01
SRC = 0x02_00_00_00_00_99


def frame(payload: bytes = b"", dst: int = DST, src: int = SRC, ether_type: int = 0x88B5) -> bytes:
    """Return an Ethernet frame of at least 60 bytes."""
    header = dst.to_bytes(6, "big") + src.to_bytes(6, "big") + ether_type.to_bytes(2, "big")
    return (header + payload).ljust(60, b"\0")


def forward(action: str, dst: int = DST, **params: int) -> TableEntry:
    return TableEntry.of("forward", {"dst_addr": dst}, action, params)


@pytest.fixture
def switch(target: Target) -> Target:
    """The target, running the probe program."""
    target.push(probe(), probe_sentinel())
    return target


def test_an_empty_switch_forwards_nothing(switch: Target) -> None:
    assert switch.exchange(1, frame()) == []
    assert switch.entries() == frozenset()


def test_frames_leave_unchanged_in_order(switch: Target) -> None:
    switch.insert(forward("to_port", port=2))
    frames = [frame(bytes([i]) * 40) for i in range(50)]
    for sent in frames:
        switch.send(1, sent)
    assert switch.collect() == [(2, sent) for sent in frames]
    assert switch.collect() == []


def test_frames_from_many_ports_are_all_collected(switch: Target) -> None:
    switch.insert(forward("to_port", port=3))
    sent = [frame(bytes([port, i])) for i in range(20) for port in PORTS]
    for i, one in enumerate(sent):
        switch.send(PORTS[i % len(PORTS)], one)
    out = by_port(switch.collect())
    assert sorted(out[3]) == sorted(sent)
    assert set(out) == {3}


def test_multicast_reaches_every_replica(switch: Target) -> None:
    switch.insert(
        MulticastGroup(7, ((1, 1), (2, 1), (4, 1), (4, 2), (8, 1))), forward("to_group", group=7)
    )
    out = [switch.exchange(3, frame(bytes([i]))) for i in range(10)]
    assert out == [[(port, frame(bytes([i]))) for port in (1, 2, 4, 4, 8)] for i in range(10)]


def test_a_push_forgets_groups_so_that_they_do_not_multiply(switch: Target) -> None:
    for _ in range(3):
        switch.push(probe(), probe_sentinel())
        switch.insert(MulticastGroup(7, ((2, 1), (3, 1))), forward("to_group", group=7))
    assert switch.exchange(1, frame()) == [(2, frame()), (3, frame())]


def test_a_clone_goes_out_beside_the_packet(switch: Target) -> None:
    switch.insert(CloneSession(5, ((6, 0),)), forward("to_port_and_mirror", port=2, session=5))
    assert switch.exchange(1, frame(b"x")) == [(2, frame(b"x")), (6, frame(b"x"))]


def test_counters_count_packets_and_bytes(switch: Target) -> None:
    entry = forward("to_port", port=2)
    switch.insert(entry)
    before = switch.counter("arrived")[5]
    for _ in range(3):
        switch.send(5, frame())
    switch.collect()
    counted = switch.direct_counters("forward")[entry]
    assert (counted.packets, counted.bytes) == (3, 180)
    assert switch.counter("arrived")[5].packets - before.packets == 3 + len(PORTS)


def test_acl_matches_ternary_range_and_optional(switch: Target) -> None:
    switch.insert(
        forward("to_port", port=2),
        TableEntry.of(
            "acl", {"src_addr": (0x0200_0000_0000, 0xFFFF_0000_0000)}, "drop", priority=10
        ),
        TableEntry.of(
            "acl",
            {"ether_type": (0x9000, 0x9FFF), "ingress_port": (3, 511)},
            "permit",
            priority=20,
        ),
    )
    assert switch.exchange(1, frame(ether_type=0x9000)) == []
    assert switch.exchange(3, frame(ether_type=0x9000)) == [(2, frame(ether_type=0x9000))]
    assert switch.exchange(3, frame(ether_type=0xA000)) == []
    other = frame(src=0x0300_0000_0000)
    assert switch.exchange(1, other) == [(2, other)]


def test_entries_are_read_back_as_they_were_written(switch: Target) -> None:
    entries = (
        forward("to_port", port=2),
        forward("to_group", dst=DST + 1, group=9),
        TableEntry.of("routes", {"dst_addr": (0x0400_0000_0000, 8)}, "drop"),
        TableEntry.of("acl", {"src_addr": (0x10, 0xF0)}, "drop", priority=3),
        TableEntry.of("acl", {"ether_type": (1, 0xFFFF)}, "drop", priority=3),
        TableEntry.of("acl", {"ingress_port": 4}, "drop", priority=4),
    )
    switch.insert(*entries)
    canonical = {switch.fleet.schema.canonical(entry) for entry in entries}
    assert switch.entries() == canonical


def test_a_refused_entry_is_named_and_the_others_are_written(switch: Target) -> None:
    switch.insert(forward("to_port", port=2))
    fresh = forward("to_port", dst=DST + 1, port=3)
    updates = [Update(Op.INSERT, forward("to_port", port=4)), Update(Op.INSERT, fresh)]
    with pytest.raises(EntryRefusedError, match=r"forward.*ALREADY_EXISTS") as caught:
        switch.write(updates)
    assert [refusal.update for refusal in caught.value.refusals] == updates[:1]
    assert switch.entries() == {forward("to_port", port=2), fresh}
