"""What the controller compiles for a tree, on each of its switches in turn."""

from __future__ import annotations

import pytest

from controller.compile import JobPlan, SourceSet, compile_programs, heard_sources
from controller.placement import Tree
from p4src.constants import Kind, Outcome
from tests.packet.program import BluetreeSwitch
from tests.packet.program_frames import lanes, summed
from tests.packet.targets import Target
from topologies.network import Network, ip_text, mac_text, wire
from topologies.topology import Overlay, Topology
from traffic.message import (
    DESTINATION_SOURCE,
    Flow,
    Message,
    decode_datagram,
    decode_frame,
    encode_frame,
    group_ip,
    group_mac,
    pack_lanes,
)

TREE = Tree(parent=[-1, 0, 0], rate=[1, 1, 1], load=[1, 2, 3], available=[True] * 3)
NAMES = ("root", "left", "right")
NETWORK: Network = wire(
    Topology(
        name="three",
        switches=NAMES,
        overlay=Overlay(names=NAMES, tree=TREE, capacity=(None,) * 3),
        links=(("left", "root"), ("right", "root")),
    )
)
JOB, EPOCH = 7, 3


def plan(blue: frozenset[int]) -> JobPlan:
    """The one job, with slots away from the first."""
    return JobPlan(job=JOB, epoch=EPOCH, blue=blue, slot_base=16, window=8)


def programmed(target: Target, blue: frozenset[int], v: int) -> BluetreeSwitch:
    """A target that holds what was compiled for switch `v`."""
    switch = BluetreeSwitch(target)
    program = compile_programs(NETWORK, [plan(blue)])[v]
    target.insert(*program.entries, *program.groups)
    return switch


def frame(message: Message, dst_ip: str) -> bytes:
    """A message on its way: addresses that no check looks at are those of nobody."""
    dst_mac = group_mac(dst_ip) if message.kind != Kind.CONTRIBUTE else mac_text(1)
    return encode_frame(Flow(mac_text(2), dst_mac, "10.9.9.9", dst_ip, 40_000), message)


def contribution(source: SourceSet, chunk: int, values: tuple[int, ...]) -> bytes:
    """What a source below the switch sends."""
    weight = len(source.ranks)
    exponent = source.source + chunk
    message = Message(
        Kind.CONTRIBUTE, 0, JOB, source.source, EPOCH, chunk, weight, pack_lanes(values), exponent
    )
    return frame(message, ip_text(NETWORK.destination.ip))


BLUE_SETS = [frozenset(s) for s in ((), (0,), (1,), (0, 1), (1, 2), (0, 1, 2))]


@pytest.mark.parametrize("blue", BLUE_SETS, ids=lambda blue: f"blue={sorted(blue)}")
@pytest.mark.parametrize("v", range(3), ids=NAMES.__getitem__)
def test_contributions_go_up_as_placed(target: Target, blue: frozenset[int], v: int) -> None:
    switch = programmed(target, blue, v)
    heard = heard_sources(NETWORK, blue)[v]
    up = NETWORK.parent_port[v]
    for chunk, factor in ((0, 1), (8, 3)):
        vectors = [lanes(source.source, factor) for source in heard]
        left: list[tuple[int, bytes]] = []
        for source, values in zip(heard, vectors, strict=True):
            left += target.exchange(source.port, contribution(source, chunk, values))
        assert {port for port, _ in left} == {up}
        messages = [decode_frame(out) for _, out in left]
        if v in blue:
            (message,) = messages
            assert message.source == NETWORK.interval[v][0]
            assert message.weight == sum(len(source.ranks) for source in heard)
            assert message.values == summed(*vectors)
            assert message.exponent == max(source.source for source in heard) + chunk
            n = len(heard)
            assert switch.outcomes() == {Outcome.ABSORBED: n - 1, Outcome.EMITTED: 1}
        else:
            assert [message.source for message in messages] == [s.source for s in heard]
            assert [message.values for message in messages] == vectors
            assert switch.outcomes() == {Outcome.FORWARDED: len(heard)}
    assert switch.messages(JOB) == (2 if v in blue else 2 * len(heard), 0)


@pytest.mark.parametrize("v", range(3), ids=NAMES.__getitem__)
def test_results_come_down_to_every_worker(target: Target, v: int) -> None:
    switch = programmed(target, frozenset({0}), v)
    message = Message(
        Kind.RESULT,
        0,
        JOB,
        DESTINATION_SOURCE,
        EPOCH,
        0,
        sum(TREE.load),
        pack_lanes(lanes(1)),
        0x0102,
    )
    left = dict(target.exchange(NETWORK.parent_port[v], frame(message, group_ip(JOB))))
    assert switch.outcomes() == {Outcome.FANNED_OUT: 1}
    workers = [worker for worker in NETWORK.workers if worker.switch == NAMES[v]]
    children = [NETWORK.child_port[child] for child in TREE.children[v]]
    assert sorted(left) == sorted([worker.port for worker in workers] + children)
    for worker in workers:
        assert left[worker.port][:6] == worker.mac.to_bytes(6, "big")
        datagram = decode_datagram(left[worker.port])
        assert datagram.dst_ip == worker.ip.to_bytes(4, "big")
        assert datagram.dst_port == worker.udp_port
        assert datagram.message == message
    for port in children:
        assert decode_datagram(left[port]).message == message
