"""The ports' counters: every frame that comes in, every frame that leaves, nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.packet.program import PARENT_PORT, WORKERS, BluetreeSwitch, Job
from tests.packet.program_frames import answer, contribution, lanes, requesting
from tests.packet.targets import PORTS as WIRED
from tests.packet.targets import Target

JOB = Job(sources=WORKERS[:3])
FIRST, SECOND, THIRD = JOB.sources


class Ports:
    """What the two counters have counted since the last look, the harness's sentinels left out."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._before = self._read()

    def since(self, came_in_at: int) -> tuple[int, Counter[int]]:
        """Frames that came in at the one port that was used, and those that left, by port.

        Beside what a test sends the harness lets one frame go from that port to each other one.
        """
        before, self._before = self._before, self._read()
        arrived, departed = (
            Counter({port: now - then for port, (then, now) in enumerate(zip(*pair, strict=True))})
            for pair in zip(before, self._before, strict=True)
        )
        sentinels = Counter(WIRED)
        assert set(+arrived) == {came_in_at}
        departed.subtract(sentinels)
        assert all(count >= 0 for count in departed.values())
        return arrived[came_in_at] - sentinels.total(), +departed

    def _read(self) -> tuple[list[int], list[int]]:
        cells = [self._target.counter(name) for name in ("arrived", "departed")]
        arrived, departed = ([cell.packets for cell in these] for these in cells)
        return arrived, departed


@pytest.fixture
def ports(target: Target) -> Ports:
    """A blue switch with three workers, and its ports."""
    BluetreeSwitch(target, JOB)
    target.insert(*JOB.repair())
    return Ports(target)


def test_what_is_absorbed_arrives_and_does_not_depart(target: Target, ports: Ports) -> None:
    for source in (FIRST, SECOND):
        assert target.exchange(source.port, contribution(source, 0, lanes(1))) == []
        assert ports.since(source.port) == (1, Counter())
    target.exchange(THIRD.port, contribution(THIRD, 0, lanes(3)))
    assert ports.since(THIRD.port) == (1, Counter([PARENT_PORT]))


def test_each_copy_of_an_answer_departs(target: Target, ports: Ports) -> None:
    target.exchange(PARENT_PORT, answer(0, lanes(1)))
    assert ports.since(PARENT_PORT) == (1, Counter(source.port for source in JOB.sources))


def test_a_request_departs_only_where_somebody_is_asked(target: Target, ports: Ports) -> None:
    """The copies for the other branches are made, and dropped in the egress."""
    target.exchange(FIRST.port, contribution(FIRST, 0, lanes(1)))
    ports.since(FIRST.port)
    target.exchange(PARENT_PORT, requesting(0, wanted=0b111))
    assert ports.since(PARENT_PORT) == (1, Counter([SECOND.port, THIRD.port]))


def test_what_is_refused_arrives(target: Target, ports: Ports) -> None:
    stranger = contribution(SECOND, 0, lanes(1))
    short = contribution(FIRST, 0, lanes(1))[:60]
    ipv6 = bytes(12) + b"\x86\xdd" + bytes(60)
    for frame in (stranger, short, ipv6):
        assert target.exchange(FIRST.port, frame) == []
        assert ports.since(FIRST.port) == (1, Counter())
