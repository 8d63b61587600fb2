"""Whatever arrives ends in exactly one outcome, and both targets make the same of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import checksum

from p4src.constants import Outcome
from tests.packet import program_mixture
from tests.packet.program import (
    CHILD,
    IDLE_PORT,
    PARENT_MAC,
    PARENT_PORT,
    SHORTEST_FRAME,
    WORKERS,
    BluetreeSwitch,
    Job,
    route,
)
from tests.packet.program_frames import contribution, lanes, sum_to_parent, summed
from tests.packet.program_mixture import JOB, random_frame
from tests.packet.targets import SoftswitchTarget, Target
from tests.packet.targets_process import Bmv2Target

BYSTANDER = Job(job=3, sources=(WORKERS[4], CHILD), slot_base=JOB.window)
"""Another job, on ports that the mixture does not come in by."""

EXAMPLES = {"softswitch": 300, "softswitch-process": 60, "bmv2": 60}
MOST_FRAMES = 30
UPWARD = range(Outcome.FORWARDED, Outcome.REEMITTED + 1)
SEED = 20_160
DIFFERENTIAL_FRAMES = 400


@st.composite
def mixtures(draw: st.DrawFn, shortest: int) -> list[tuple[int, bytes]]:
    """Frames of every kind; all are drawn before the first is sent."""
    rng = draw(st.randoms(use_true_random=True))
    return [random_frame(rng, shortest) for _ in range(draw(st.integers(1, MOST_FRAMES)))]


def started(target: Target) -> BluetreeSwitch:
    """Both jobs, and routes that lead to the idle port only."""
    switch = BluetreeSwitch(target, JOB)
    entries = [entry for entry in BYSTANDER.membership() if entry.table != "downstream"]
    network = int.from_bytes(bytes(map(int, program_mixture.ROUTED_NET.split("."))), "big") << 8
    target.insert(*entries, *BYSTANDER.blue(), route(network, 24, IDLE_PORT, PARENT_MAC))
    return switch


def test_every_packet_ends_in_one_outcome_and_the_other_job_stands_still(target: Target) -> None:
    switch = started(target)
    shortest = SHORTEST_FRAME[target.kind]
    chunks = iter(range(2**32))

    @settings(max_examples=EXAMPLES[target.kind])
    @given(mixtures(shortest), st.sampled_from([1, 3]))
    def run(frames: list[tuple[int, bytes]], factor: int) -> None:
        chunk = next(chunks)
        vectors = [lanes(source.source + chunk, factor) for source in BYSTANDER.sources]
        first, second = (
            contribution(source, chunk, values, job=BYSTANDER.job)
            for source, values in zip(BYSTANDER.sources, vectors, strict=True)
        )
        switch.check(WORKERS[4].port, first, Outcome.ABSORBED)
        for port, frame in frames:
            target.send(port, frame)
        left = target.collect()
        counted = switch.outcomes()
        assert sum(counted.values()) == len(frames)
        assert leaving_ports(left) == expected_ports(counted)
        assert all(checksum(header) == 0 for header in ipv4_headers(left))
        leaving = sum_to_parent(second, BYSTANDER, summed(*vectors))
        switch.check(CHILD.port, second, Outcome.EMITTED, leaving)

    run()


def expected_ports(counted: dict[Outcome, int]) -> dict[int, int]:
    """Frames by port that must have left after these outcomes."""
    expected = {source.port: counted.get(Outcome.FANNED_OUT, 0) for source in JOB.sources}
    expected[IDLE_PORT] = counted.get(Outcome.ROUTED, 0)
    expected[PARENT_PORT] = sum(counted.get(Outcome(cell), 0) for cell in UPWARD)
    return {port: n for port, n in expected.items() if n}


def leaving_ports(left: list[tuple[int, bytes]]) -> dict[int, int]:
    """Frames by port."""
    ports = [port for port, _ in left]
    return {port: ports.count(port) for port in sorted(set(ports))}


def ipv4_headers(left: list[tuple[int, bytes]]) -> Iterator[bytes]:
    """The IPv4 header of each frame, options included."""
    return (frame[14 : 14 + 4 * (frame[14] & 0xF)] for _, frame in left)


@pytest.mark.parametrize(
    "running_target", [pytest.param(Bmv2Target.kind, marks=pytest.mark.bmv2)], indirect=True
)
def test_both_targets_make_the_same_of_the_same_frames(target: Target) -> None:
    rng = random.Random(SEED)
    frames = [random_frame(rng, SHORTEST_FRAME["bmv2"]) for _ in range(DIFFERENTIAL_FRAMES)]
    assert target.kind == Bmv2Target.kind
    reference = SoftswitchTarget()
    try:
        switches = (started(target), started(reference))
        for switch in switches:
            switch.target.insert(*JOB.repair())
        for i, (port, frame) in enumerate(frames):
            here, there = (switch.target.exchange(port, frame) for switch in switches)
            assert here == there, f"frame {i} at port {port}: {frame.hex()}"
        counted = [switch.outcomes() for switch in switches]
        assert counted[0] == counted[1]
        assert sum(counted[0].values()) == DIFFERENTIAL_FRAMES
        # The list reaches every outcome but those that need other entries.
        assert set(Outcome) - set(counted[0]) == {Outcome.BAD_SLOT, Outcome.NO_PARENT}
        assert switches[0].messages() == switches[1].messages()
        upstream = [switch.target.direct_counters("upstream") for switch in switches]
        assert upstream[0] == upstream[1]
    finally:
        reference.close()
