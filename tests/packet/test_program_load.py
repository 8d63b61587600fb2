"""Many packets from many ports at once, and a build with another number of lanes."""

from __future__ import annotations

from collections import Counter

import pytest

from p4src import artefacts
from p4src.constants import LANES, Flag, Kind, Outcome
from tests.packet.program import (
    OWN_SOURCE,
    PARENT_PORT,
    WORKERS,
    BluetreeSwitch,
    Job,
    Source,
)
from tests.packet.program_frames import DESTINATION_IP, SWITCH_MAC
from tests.packet.targets import Target
from topologies.network import mac_text
from traffic.message import Flow, FrameEncoder, Message, decode_frame, pack_lanes

SOURCES = WORKERS[:4]
CHUNKS = 10_000
WINDOW = 64
OTHER_LANES = 64
BUILDS = {OTHER_LANES: 1, 128: 2, 240: 4}
"""Builds with other lanes: lanes, and the words that they are divided into."""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[int, artefacts.Artefacts]:
    """The program compiled for each of BUILDS, by lanes."""
    if artefacts.compiler_version() is None:
        pytest.skip(f"{artefacts.COMPILER} is not on PATH: no build with other LANES was checked")
    compiled = {}
    for lane_count, words in BUILDS.items():
        directory = tmp_path_factory.mktemp(f"lanes-{lane_count}")
        artefacts.compile_program(directory, defines=(f"LANES={lane_count}", f"WORDS={words}"))
        compiled[lane_count] = artefacts.load(directory)
    return compiled


@pytest.fixture
def wide(builds: dict[int, artefacts.Artefacts]) -> artefacts.Artefacts:
    """The program compiled for OTHER_LANES."""
    return builds[OTHER_LANES]


class Sender:
    """Builds a source's contributions fast."""

    def __init__(self, source: Source, lane_count: int = LANES) -> None:
        self.port = source.port
        self._source = source
        self._encoder = FrameEncoder(
            Flow(mac_text(source.mac), mac_text(SWITCH_MAC), source.ip, DESTINATION_IP, 40_000),
            lane_count,
        )

    def frame(self, chunk: int, lanes: bytes, flags: int = 0) -> bytes:
        """The contribution of one chunk."""
        return self._encoder.encode(
            Message(Kind.CONTRIBUTE, flags, 1, self._source.source, 1, chunk, 1, lanes)
        )


def sums(left: list[tuple[int, bytes]], lane_count: int = LANES) -> list[Message]:
    """What went up; nothing else may have left."""
    assert {port for port, _ in left} <= {PARENT_PORT}
    return [decode_frame(frame, lane_count) for _, frame in left]


def test_ten_thousand_ones_from_each_of_four_ports_are_forty_thousand(target: Target) -> None:
    """In every lane, and with one completion a chunk. The four ports send at the same time, a
    window of chunks ahead, each window in another order of the ports."""
    switch = BluetreeSwitch(target, Job(sources=SOURCES, window=WINDOW))
    senders = [Sender(source) for source in SOURCES]
    ones = pack_lanes([1] * LANES)
    totals = [0] * LANES
    completed: Counter[int] = Counter()
    for start in range(0, CHUNKS, WINDOW):
        senders.append(senders.pop(0))
        for chunk in range(start, min(start + WINDOW, CHUNKS)):
            for sender in senders:
                target.send(sender.port, sender.frame(chunk, ones))
        for message in sums(target.collect()):
            assert (message.source, message.weight, message.flags) == (OWN_SOURCE, 4, 0)
            completed[message.chunk] += 1
            totals = [total + value for total, value in zip(totals, message.values, strict=True)]
    assert totals == [4 * CHUNKS] * LANES
    assert completed == Counter(range(CHUNKS))
    assert switch.outcomes() == {Outcome.ABSORBED: 3 * CHUNKS, Outcome.EMITTED: CHUNKS}
    assert switch.messages() == (CHUNKS, 0)


@pytest.mark.parametrize("lane_count", BUILDS)
def test_a_build_with_more_lanes_sums_them_all(
    target: Target, builds: dict[int, artefacts.Artefacts], lane_count: int
) -> None:
    job = Job(sources=SOURCES)
    switch = BluetreeSwitch(target, job, program=builds[lane_count])
    senders = [Sender(source, lane_count) for source in SOURCES]
    for chunk, factor in ((0, 1), (job.window, 3)):
        vectors = [
            [(i * 1000 + lane - 1500) * factor for lane in range(lane_count)] for i in range(4)
        ]
        for sender, values in zip(senders, vectors, strict=True):
            target.send(sender.port, sender.frame(chunk, pack_lanes(values)))
        (message,) = sums(target.collect(), lane_count)
        assert message.values == tuple(map(sum, zip(*vectors, strict=True)))
        assert (message.weight, message.flags) == (4, 0)
        again = senders[0].frame(chunk, pack_lanes([9] * lane_count), Flag.RESENT)
        target.send(senders[0].port, again)
        (repeated,) = sums(target.collect(), lane_count)
        assert (repeated.values, repeated.flags) == (message.values, Flag.RESENT)
    assert switch.outcomes() == {Outcome.ABSORBED: 6, Outcome.EMITTED: 2, Outcome.REEMITTED: 2}


@pytest.mark.parametrize("lane_count", BUILDS)
def test_overflow_is_seen_in_every_lane_and_stays_in_it(
    target: Target, builds: dict[int, artefacts.Artefacts], lane_count: int
) -> None:
    """The first and the last lane of every word."""
    BluetreeSwitch(target, Job(sources=SOURCES[:2]), program=builds[lane_count])
    senders = [Sender(source, lane_count) for source in SOURCES[:2]]
    in_word = lane_count // BUILDS[lane_count]
    starts = range(0, lane_count, in_word)
    edges = [lane for start in starts for lane in (start, start + in_word - 1)]
    for chunk, lane in enumerate([None, *edges]):
        values = [0] * lane_count
        if lane is not None:
            values[lane] = 2**30
        for sender in senders:
            target.send(sender.port, sender.frame(chunk, pack_lanes(values)))
        (message,) = sums(target.collect(), lane_count)
        assert message.flags == (0 if lane is None else Flag.OVERFLOW)
        wrapped = [-(2**31) if i == lane else 0 for i in range(lane_count)]
        assert list(message.values) == wrapped


def test_builds_with_other_lanes_refuse_each_other(
    target: Target, wide: artefacts.Artefacts
) -> None:
    switch = BluetreeSwitch(target, Job(sources=SOURCES))
    strange = Sender(SOURCES[0], OTHER_LANES).frame(0, pack_lanes([1] * OTHER_LANES))
    switch.check(SOURCES[0].port, strange, Outcome.MALFORMED)
    switch = BluetreeSwitch(target, Job(sources=SOURCES), program=wide)
    ordinary = Sender(SOURCES[0]).frame(0, pack_lanes([1] * LANES), Flag.DIRECT)
    switch.check(SOURCES[0].port, ordinary, Outcome.MALFORMED)
