"""Priority queues of a switch process: order, rate, depth, and what egress is told of the wait.

The same packets into softswitch and into bmv2's simple_switch_grpc; the program is
tests/programs/queues.p4. A slow queue, 4 packets/s and 3 deep, makes packets wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from p4src.artefacts import Artefacts
from tests.differential.cases import sentinel
from tests.packet.targets_process import (
    Bmv2Target,
    ProcessTarget,
    SoftswitchProcessTarget,
    why_not,
)
from tests.packet.targets_sentinels import PROGRAMS
from tests.packet.thrift_client import set_queue_depth, set_queue_rate

IN, OUT = 1, 2
FREE, SLOW, FAST, NONE = 0, 1, 3, 4
RATE, DEPTH = 4, 3
GAP_US = 1_000_000 // RATE
QUEUES = 4


class Bmv2Queues(Bmv2Target):
    """simple_switch_grpc with queues."""

    queues = QUEUES


class SoftswitchQueues(SoftswitchProcessTarget):
    """softswitch with queues."""

    queues = QUEUES


@dataclass(frozen=True, slots=True)
class Left:
    """A packet that left, and what egress knew of its wait; times in microseconds."""

    tag: int
    enq_qdepth: int
    deq_qdepth: int
    waited: int
    stayed: int


@pytest.fixture(
    scope="module",
    params=[SoftswitchQueues, pytest.param(Bmv2Queues, marks=pytest.mark.bmv2)],
    ids=lambda kind: str(kind.kind),
)
def queues(request: pytest.FixtureRequest) -> Iterator[ProcessTarget]:
    """A switch whose queue SLOW of port OUT is slow and short; the others are as by default."""
    kind = request.param
    reason = why_not(kind.command)
    if reason is not None:
        pytest.skip(reason)
    target: ProcessTarget = kind()
    try:
        json = (PROGRAMS / "queues.json").read_bytes()
        p4info = (PROGRAMS / "queues.p4info.txtpb").read_text(encoding="utf-8")
        target.push(Artefacts(json, p4info), sentinel())
        # as simple_switch_CLI does on `set_queue_rate 4 2 1` and `set_queue_depth 3 2 1`
        set_queue_rate(target.thrift_port, OUT, SLOW, RATE)
        set_queue_depth(target.thrift_port, OUT, SLOW, DEPTH)
        yield target
    finally:
        target.close()


def order(priority: int, tag: int) -> bytes:
    return bytes([0, priority]) + OUT.to_bytes(2) + bytes([1]) + bytes(19) + bytes([tag]) * 40


def collect(target: ProcessTarget, count: int) -> list[Left]:
    """All that left, at least `count` packets, and all by port OUT."""
    found: list[Left] = []
    for port, frame in target.collect(count):
        assert port == OUT
        enq_qdepth, deq_qdepth = (int.from_bytes(frame[at : at + 2]) for at in (6, 8))
        enqueued, waited = (int.from_bytes(frame[at : at + 4]) for at in (10, 14))
        now = int.from_bytes(frame[18:24])
        found.append(Left(frame[24], enq_qdepth, deq_qdepth, waited, now - enqueued))
    return found


def occupy(target: ProcessTarget) -> None:
    """Let a packet leave the slow queue just now: those behind it wait."""
    target.send(IN, order(SLOW, 0))
    collect(target, 1)


def test_a_slow_queue_spaces_packets_and_tells_of_the_wait(queues: ProcessTarget) -> None:
    occupy(queues)
    for tag in range(1, DEPTH + 3):
        queues.send(IN, order(SLOW, tag))
    left = collect(queues, DEPTH)
    # in order; those beyond the depth are gone
    assert [(p.tag, p.enq_qdepth, p.deq_qdepth) for p in left] == [(1, 0, 2), (2, 1, 1), (3, 2, 0)]
    for place, packet in enumerate(left, 1):
        assert (place - 1) * GAP_US < packet.waited < (place + 0.5) * GAP_US
        assert abs(packet.stayed - packet.waited) < GAP_US // 4


def test_another_priority_overtakes(queues: ProcessTarget) -> None:
    occupy(queues)
    for tag in (1, 2):
        queues.send(IN, order(SLOW, tag))
    queues.send(IN, order(FREE, 10))
    queues.send(IN, order(FAST, 11))
    left = collect(queues, 4)
    assert sorted(p.tag for p in left[:2]) == [10, 11]
    assert [p.tag for p in left[2:]] == [1, 2]
    # each queue has a depth of its own
    assert {(p.enq_qdepth, p.deq_qdepth) for p in left[:2]} == {(0, 0)}


def test_a_priority_without_a_queue_drops(queues: ProcessTarget) -> None:
    queues.send(IN, order(NONE, 1))
    queues.send(IN, order(FREE, 2))
    assert [p.tag for p in collect(queues, 1)] == [2]
