"""Times, queues and mishaps of links."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.fabric.nodes import Sender, Sink
from topologies.fabric import Fabric, FabricError, FrameTooLargeError, LinkCounters, LinkSpec
from topologies.fabric.nodes import HOST_PORT


def one_way(frames: list[bytes], spec: LinkSpec, seed: int = 0) -> tuple[Fabric, Sink]:
    """A sender and a sink on one link, run until nothing is left to happen."""
    fabric = Fabric(seed)
    sink = Sink()
    fabric.add_host("a", Sender(frames))
    fabric.add_host("b", sink)
    fabric.connect(("a", HOST_PORT), ("b", HOST_PORT), spec)
    fabric.run()
    return fabric, sink


def counters(fabric: Fabric) -> LinkCounters:
    return fabric.direction("a", "b").counters


def numbered(count: int, size: int = 100) -> list[bytes]:
    return [number.to_bytes(4, "big") + bytes(size - 4) for number in range(count)]


def test_a_frame_takes_its_bits_over_the_rate_and_then_the_delay() -> None:
    # 125 bytes at 1 Gbit/s are 1 microsecond.
    _, sink = one_way(numbered(3, 125), LinkSpec(rate=10**9, delay=500))
    assert sink.times == [1500, 2500, 3500]


def test_an_infinite_rate_leaves_the_delay() -> None:
    _, sink = one_way(numbered(3), LinkSpec(delay=7))
    assert sink.times == [7, 7, 7]
    assert sink.frames == numbered(3)


def test_overhead_occupies_the_wire() -> None:
    _, sink = one_way(numbered(2, 101), LinkSpec(rate=10**9, delay=0, overhead_bytes=24))
    assert sink.times == [1000, 2000]


@given(st.integers(1, 10**12), st.lists(st.integers(4, 1514), min_size=1, max_size=30))
def test_rounding_of_times_never_accumulates(rate: int, sizes: list[int]) -> None:
    frames = [bytes(size) for size in sizes]
    _, sink = one_way(frames, LinkSpec(rate=rate, delay=0))
    bits = 0
    for size, time in zip(sizes, sink.times, strict=True):
        bits += 8 * size
        assert time == math.ceil(Fraction(bits * 10**9, rate))


@pytest.mark.parametrize(
    "spec",
    [
        LinkSpec(rate=10**9, delay=0, queue_frames=4),
        LinkSpec(rate=10**9, delay=0, queue_bytes=400),
        LinkSpec(rate=10**9, delay=0, queue_bytes=499),
    ],
)
def test_a_full_queue_drops_what_comes_last(spec: LinkSpec) -> None:
    fabric, sink = one_way(numbered(10), spec)
    # One on the wire, four waiting.
    assert sink.frames == numbered(10)[:5]
    assert counters(fabric) == LinkCounters(
        offered=10, sent=5, sent_bytes=500, delivered=5, queue_full=5, longest_wait=3200
    )


def test_a_queue_drains() -> None:
    fabric, sink = one_way(numbered(3), LinkSpec(rate=10**9, delay=0, queue_frames=1))
    assert len(sink.heard) == 2
    fabric.send("a", numbered(3))
    fabric.run()
    assert len(sink.heard) == 4
    assert counters(fabric).queue_full == 2


def test_a_queue_of_none_sends_only_when_the_wire_is_free() -> None:
    _, sink = one_way(numbered(3), LinkSpec(rate=10**9, delay=0, queue_frames=0))
    assert sink.frames == numbered(1)


def test_a_frame_above_the_mtu_is_refused_naming_the_largest() -> None:
    _, sink = one_way([bytes(1514)], LinkSpec())
    assert len(sink.heard) == 1
    text = (
        r"a sends a frame of 1515 bytes into a:0>b:0: the largest legal size is 1514 \(MTU 1500\)"
    )
    with pytest.raises(FrameTooLargeError, match=text):
        one_way([bytes(1515)], LinkSpec())
    with pytest.raises(FrameTooLargeError, match="largest legal size is 114"):
        one_way([bytes(115)], LinkSpec(mtu=100))


def test_everything_lost_and_everything_duplicated() -> None:
    fabric, sink = one_way(numbered(5), LinkSpec(loss=1))
    assert sink.heard == []
    assert counters(fabric).lost == counters(fabric).sent == 5
    fabric, sink = one_way(numbered(5), LinkSpec(duplicate=1))
    assert sorted(sink.frames) == sorted(numbered(5) * 2)
    assert counters(fabric).duplicated == 5


def test_reordered_frames_are_overtaken() -> None:
    frames = numbered(200)
    spec = LinkSpec(rate=10**9, delay=0, reorder=0.2, reorder_delay=5000)
    fabric, sink = one_way(frames, spec)
    assert sorted(sink.frames) == frames
    assert sink.frames != frames
    assert 20 <= counters(fabric).reordered <= 60
    # A frame is late by the reorder delay at most.
    for time, frame in sink.heard:
        on_time = 800 * (int.from_bytes(frame[:4], "big") + 1)
        assert on_time <= time <= on_time + 5000


def test_probabilities_are_met() -> None:
    spec = LinkSpec(loss=0.1, duplicate=0.05, reorder=0.2)
    seen = counters(one_way(numbered(20_000), spec, seed=3)[0])
    assert abs(seen.lost - 2000) < 200
    assert abs(seen.duplicated - 900) < 150
    assert abs(seen.reordered - 3600) < 300


@given(
    st.integers(0, 2**32),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.one_of(st.none(), st.integers(0, 5)),
)
def test_every_frame_is_accounted_for(
    seed: int, loss: float, duplicate: float, reorder: float, depth: int | None
) -> None:
    spec = LinkSpec(rate=10**9, loss=loss, duplicate=duplicate, reorder=reorder, queue_frames=depth)
    fabric, sink = one_way([*numbered(30)], spec, seed)
    seen = counters(fabric)
    assert seen.offered == 30 == seen.sent + seen.queue_full
    assert seen.sent + seen.duplicated == seen.delivered + seen.lost
    assert seen.delivered == len(sink.heard)


def fates(seed: int, spec: LinkSpec, others: int) -> list[tuple[int, bytes]]:
    """What a sink hears on one link when `others` other lossy links are busy beside it."""
    fabric = Fabric(seed)
    for number in range(others):
        fabric.add_host(f"x{number}", Sender(numbered(50)))
        fabric.add_host(f"y{number}", Sink())
        fabric.connect((f"x{number}", 0), (f"y{number}", 0), LinkSpec(loss=0.5, reorder=0.5))
    sink = Sink()
    fabric.add_host("a", Sender(numbered(200)))
    fabric.add_host("b", sink)
    fabric.connect(("a", 0), ("b", 0), spec)
    fabric.run()
    return sink.heard


def test_a_links_randomness_depends_on_nothing_but_seed_and_link() -> None:
    spec = LinkSpec(rate=10**9, loss=0.2, duplicate=0.2, reorder=0.2)
    assert fates(1, spec, others=0) == fates(1, spec, others=3)
    assert fates(1, spec, others=0) != fates(2, spec, others=0)


def test_one_kind_of_mishap_does_not_shift_another() -> None:
    def lost(spec: LinkSpec) -> set[bytes]:
        return set(numbered(200)) - {frame for _, frame in fates(5, spec, 0)}

    assert lost(LinkSpec(loss=0.3)) == lost(LinkSpec(loss=0.3, duplicate=0.4, reorder=0.4))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"rate": 0}, "rate is 0"),
        ({"delay": -1}, "delay is -1"),
        ({"queue_frames": -1}, "queue_frames is -1"),
        ({"loss": 1.5}, "loss is 1.5: a probability is 0 to 1"),
        ({"duplicate": -0.1}, "duplicate is -0.1"),
        ({"reorder": math.nan}, "reorder is nan"),
        ({"mtu": 0}, "mtu is 0"),
    ],
)
def test_impossible_links_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(FabricError, match=text):
        LinkSpec(**settings)
