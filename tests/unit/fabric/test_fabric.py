"""The clock, nodes and failures of the fabric."""

from pathlib import Path

import pytest
from scapy.utils import rdpcap

from tests.unit.fabric.nodes import Echo, Sender, Sink, Ticker, Wire
from topologies.fabric import HOST_PORT, Fabric, FabricError, LinkSpec, StopReason
from topologies.fabric.link import Direction

MICROSECOND = LinkSpec(delay=1000)
FRAME = bytes(60)


def through_switch(
    left: Sink, right: Sink, spec: LinkSpec = MICROSECOND, latency: int = 0
) -> Fabric:
    fabric = Fabric()
    fabric.add_host("left", left)
    fabric.add_host("right", right)
    fabric.add_switch("s", Wire(), latency=latency)
    fabric.connect(("left", HOST_PORT), ("s", 1), spec)
    fabric.connect(("right", HOST_PORT), ("s", 2), spec)
    return fabric


def test_frames_cross_a_switch() -> None:
    right = Sink()
    fabric = through_switch(Sender([FRAME]), right, latency=250)
    result = fabric.run()
    assert right.heard == [(2250, FRAME)]
    assert (result.reason, result.now) == (StopReason.IDLE, 2250)


def test_a_run_ends_when_its_condition_holds() -> None:
    fabric = through_switch(Sender([FRAME] * 5), Sink(expected=3))
    assert fabric.unfinished() == ("right",)
    result = fabric.run(until=fabric.all_finished)
    assert result.reason is StopReason.DONE
    assert fabric.direction("s", "right").counters.delivered == 3
    assert fabric.unfinished() == ()
    assert fabric.run(until=fabric.all_finished).events == 0


def test_a_deadlock_is_told_from_an_end() -> None:
    fabric = through_switch(Sender([FRAME]), Sink(expected=2))
    assert fabric.run(until=fabric.all_finished).reason is StopReason.IDLE
    assert fabric.unfinished() == ("right",)


def test_a_run_ends_at_its_deadline_and_goes_on() -> None:
    right = Sink()
    fabric = through_switch(Sender([FRAME]), right)
    result = fabric.run(deadline=1999)
    assert (result.reason, result.now, fabric.now) == (StopReason.DEADLINE, 1999, 1999)
    assert right.heard == []
    fabric.run(deadline=2000)
    assert right.times == [2000]


def test_a_run_ends_after_so_many_events_and_reports_progress() -> None:
    fabric = through_switch(Echo(10**6, [FRAME]), Echo(10**6))
    seen: list[int] = []
    result = fabric.run(
        max_events=1000, progress=lambda: seen.append(fabric.now), progress_every=100
    )
    assert (result.reason, result.events) == (StopReason.EVENTS, 1000)
    assert len(seen) == 10
    assert seen == sorted(seen)


def test_hosts_start_at_their_time() -> None:
    fabric = Fabric()
    right = Sink()
    fabric.add_host("right", right)
    fabric.add_host("late", Sender([FRAME]), start_at=5000)
    fabric.connect(("late", 0), ("right", 0), MICROSECOND)
    fabric.run()
    assert right.times == [6000]


def test_agents_are_woken_at_their_deadlines_only() -> None:
    ticker = Ticker([100, 250, 251, 9000])
    fabric = through_switch(ticker, Sink())
    fabric.run()
    assert ticker.woken == [100, 250, 251, 9000]


def test_a_deadline_that_moves_forward_is_met_and_one_that_moves_back_is_awaited() -> None:
    ticker = Ticker([10_000])

    def hurry(now: int) -> None:
        ticker.due = [now + 5]

    ticker.on_receive = hurry
    fabric = through_switch(Sender([FRAME]), ticker)
    fabric.run()
    assert ticker.woken == [2005]

    ticker = Ticker([2500])

    def wait(now: int) -> None:
        ticker.due = [9000]

    ticker.on_receive = wait
    through_switch(Sender([FRAME]), ticker).run()
    assert ticker.woken == [9000]


def test_what_is_done_to_an_agent_from_outside_is_noticed() -> None:
    ticker = Ticker([])
    fabric = through_switch(ticker, Sink())
    fabric.run()
    assert fabric.all_finished()
    ticker.due = [7000]
    fabric.send("left", [])
    assert not fabric.all_finished()
    fabric.run()
    assert ticker.woken == [7000]
    assert fabric.all_finished()


def test_calls_happen_at_their_time_in_order_of_scheduling() -> None:
    fabric = Fabric()
    seen: list[tuple[str, int]] = []
    fabric.call_at(20, lambda: seen.append(("second", fabric.now)))
    fabric.call_at(20, lambda: seen.append(("third", fabric.now)))
    fabric.call_at(10, lambda: seen.append(("first", fabric.now)))
    fabric.run()
    assert seen == [("first", 10), ("second", 20), ("third", 20)]
    with pytest.raises(FabricError, match="time 5 has passed: it is 20"):
        fabric.call_at(5, lambda: None)


def test_a_dead_node_drops_everything_until_it_is_restarted() -> None:
    right = Sink()
    fabric = through_switch(Sender([FRAME]), right)
    fabric.fail("s")
    fabric.run()
    assert right.heard == []
    assert fabric.direction("left", "s").counters.to_dead == 1
    fabric.inject("s", 1, FRAME)
    fabric.restart("s")
    fabric.send("left", [FRAME])
    fabric.run()
    assert len(right.heard) == 1


def test_a_dying_node_loses_what_waits_in_its_queues_but_not_what_has_left() -> None:
    # A frame of 125 bytes takes 1000 ns; at 2500 two have left, the third is being sent.
    sink = Sink()
    fabric = Fabric()
    fabric.add_host("a", Sender([bytes(125)] * 6))
    fabric.add_host("b", sink)
    fabric.connect(("a", 0), ("b", 0), LinkSpec(rate=10**9, delay=5000))
    fabric.call_at(2500, lambda: fabric.fail("a"))
    fabric.run()
    assert sink.times == [6000, 7000]
    assert fabric.direction("a", "b").counters.cut == 4


def test_a_restarted_switch_may_have_a_fresh_device() -> None:
    class Reflector:
        def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
            return [(port, data)]

    left, right = Sender([]), Sink()
    fabric = through_switch(left, right)
    fabric.fail("s")
    fabric.restart("s", device=Reflector())
    fabric.send("left", [FRAME])
    fabric.run()
    assert (len(left.heard), len(right.heard)) == (1, 0)


def test_a_dead_host_is_silent_and_its_agent_goes_on_after_a_restart() -> None:
    ticker = Ticker([100, 5000])
    fabric = through_switch(ticker, Sink())
    fabric.call_at(50, lambda: fabric.fail("left"))
    fabric.call_at(2000, lambda: fabric.restart("left"))
    fabric.run(deadline=1999)
    assert ticker.woken == []
    fabric.run()
    assert ticker.woken == [2000, 5000]


def test_a_restarted_host_may_have_a_fresh_agent() -> None:
    right = Sink()
    fabric = through_switch(Sender([b"old" + FRAME]), right)
    fabric.run()
    fabric.fail("left")
    fabric.restart("left", agent=Sender([b"new" + FRAME]))
    fabric.run()
    assert [frame[:3] for frame in right.frames] == [b"old", b"new"]


def test_a_host_revived_before_its_time_starts_once() -> None:
    right = Sink()
    fabric = Fabric()
    fabric.add_host("a", Sender([FRAME]), start_at=1000)
    fabric.add_host("b", right)
    fabric.connect(("a", 0), ("b", 0), MICROSECOND)
    fabric.fail("a")
    fabric.restart("a")
    fabric.run()
    assert len(right.heard) == 1


def test_a_link_that_goes_down_loses_what_is_on_it() -> None:
    left, right = Sender([FRAME]), Sink()
    fabric = through_switch(left, right)
    fabric.call_at(1500, lambda: fabric.set_link("right", "s", up=False))
    fabric.run()
    fabric.send("left", [FRAME])
    fabric.run()
    assert right.heard == []
    seen = fabric.direction("s", "right").counters
    assert (seen.cut, seen.refused_down) == (1, 1)
    fabric.set_link("s", "right", up=True)
    fabric.send("left", [FRAME])
    fabric.run()
    assert len(right.heard) == 1


def test_frames_without_a_link_are_counted_and_handed_on() -> None:
    handed: list[tuple[int, bytes]] = []
    fabric = Fabric()
    fabric.add_switch("s", Wire(), on_unconnected=lambda port, frame: handed.append((port, frame)))
    fabric.inject("s", 1, FRAME)
    assert handed == [(2, FRAME)]


def test_an_oversized_frame_of_a_switch_is_counted_not_fatal() -> None:
    right = Sink()
    fabric = Fabric()
    fabric.add_switch("s", Wire())
    fabric.add_host("right", right)
    fabric.connect(("s", 2), ("right", 0), LinkSpec(mtu=46))
    fabric.inject("s", 1, FRAME)
    fabric.inject("s", 1, FRAME + b"!")
    fabric.run()
    assert right.frames == [FRAME]
    assert fabric.direction("s", "right").counters.oversized == 1


def test_frames_are_counted_by_predicate_where_they_are_sent() -> None:
    frames = [b"x" + FRAME, b"y" + FRAME, b"x" + FRAME]
    fabric = through_switch(Sender(frames), Sink(), LinkSpec(loss=0.5))
    taps = fabric.watch(lambda frame: frame[:1] == b"x")
    fabric.run()
    assert taps["left", "s"].count == 2
    sent = fabric.direction("s", "right").counters.sent
    assert sent == fabric.direction("left", "s").counters.delivered
    assert taps["right", "s"].count == 0


def test_parallel_links_share_a_counter_and_are_named_by_port() -> None:
    class Both:
        def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
            return [(1, data), (2, data)]

    fabric = Fabric()
    fabric.add_switch("s", Both())
    fabric.add_switch("t", Wire())
    fabric.connect(("s", 1), ("t", 1), MICROSECOND)
    fabric.connect(("s", 2), ("t", 2), MICROSECOND)
    taps = fabric.watch(lambda frame: True)
    fabric.inject("s", 3, FRAME)
    assert taps["s", "t"].count == 2
    with pytest.raises(FabricError, match="2 links go from s to t"):
        fabric.direction("s", "t")
    assert [d.name for d in fabric.directions] == ["s:1>t:1", "t:1>s:1", "s:2>t:2", "t:2>s:2"]


def test_both_ways_may_differ() -> None:
    left, right = Echo(1, [FRAME]), Echo(1)
    fabric = Fabric()
    fabric.add_host("left", left)
    fabric.add_host("right", right)
    fabric.connect(("left", 0), ("right", 0), LinkSpec(delay=10), LinkSpec(delay=500))
    fabric.run(until=fabric.all_finished)
    assert fabric.now == 510


def test_wrong_orders_are_refused() -> None:
    fabric = through_switch(Sink(), Sink())
    with pytest.raises(FabricError, match="left exists already"):
        fabric.add_switch("left", Wire())
    with pytest.raises(FabricError, match="port 1 of s is connected already to left"):
        fabric.connect(("s", 1), ("right", 0), MICROSECOND)
    with pytest.raises(FabricError, match="host left has no port 3"):
        fabric.connect(("left", 3), ("s", 3), MICROSECOND)
    with pytest.raises(FabricError, match="there is no node nowhere"):
        fabric.fail("nowhere")
    with pytest.raises(FabricError, match="left is a host, not a switch"):
        fabric.inject("left", 1, FRAME)
    with pytest.raises(FabricError, match="s is a switch, not a host"):
        fabric.send("s", [FRAME])
    with pytest.raises(FabricError, match="no link joins left and right"):
        fabric.set_link("left", "right", up=False)
    alone = Fabric()
    alone.add_host("h", Sender([FRAME]))
    with pytest.raises(FabricError, match="host h is not connected"):
        alone.run()


def test_the_trace_tells_what_happens_to_every_frame() -> None:
    seen: list[tuple[int, str, str]] = []

    def record(now: int, what: str, direction: Direction, frame: bytes) -> None:
        seen.append((now, what, direction.name))

    fabric = through_switch(Sender([FRAME]), Sink())
    fabric.trace(record)
    fabric.set_link("s", "right", up=False)
    fabric.run()
    assert seen == [
        (0, "sent", "left:0>s:1"),
        (1000, "delivered", "left:0>s:1"),
        (1000, "down", "s:2>right:0"),
    ]


def test_a_capture_is_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    frames = [bytes([number]) * (60 + number) for number in range(5)]
    fabric = through_switch(Sender(frames), Sink(), LinkSpec(delay=1_234_567_891))
    with fabric.capture(path):
        fabric.run()
    packets = rdpcap(str(path))
    assert [bytes(packet) for packet in packets] == frames * 2
    assert [float(packet.time) for packet in packets] == pytest.approx(
        [1.234567891] * 5 + [2.469135782] * 5
    )
    assert [packet.sniffed_on for packet in packets] == ["left:0>s:1"] * 5 + ["s:2>right:0"] * 5
