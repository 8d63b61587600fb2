"""Links that carry nothing, by the counters at their ends: those that do, and those that do not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller.cuts import FORGET_NS, LOST_FRAMES, Cut, CutFinder, PortCounts
from controller.placement import Tree
from tests.unit.controller.trees import topology_of
from topologies.network import wire

NETWORK = wire(topology_of(Tree(parent=[-1, 0, 0], rate=[1] * 3, load=[1, 2, 1])))
SWITCHES = NETWORK.topology.switches
UP = ("s1", "s0")
STEP_NS = 500_000_000


class Links:
    """What the counters say of three switches, s1 and s2 below s0, and what is found."""

    def __init__(self) -> None:
        self.finder = CutFinder(NETWORK)
        self.departed: dict[tuple[str, str], int] = {}
        self.arrived: dict[tuple[str, str], int] = {}
        self.now = 0
        ports = {}
        for link in NETWORK.links:
            ports[link.lower, link.upper] = (link.lower_port, link.upper_port)
            ports[link.upper, link.lower] = (link.upper_port, link.lower_port)
        self._ports = ports

    def send(self, way: tuple[str, str], frames: int, arriving: int | None = None) -> None:
        self.departed[way] = self.departed.get(way, 0) + frames
        self.arrived[way] = self.arrived.get(way, 0) + (frames if arriving is None else arriving)

    def read(self, *, without: str = "", dark: tuple[str, ...] = ()) -> tuple[Cut, ...]:
        """One more reading, and what is found then."""
        counts = {
            name: PortCounts(
                {ports[1]: self.arrived.get(way, 0) for way, ports in self._at(name, 1)},
                {ports[0]: self.departed.get(way, 0) for way, ports in self._at(name, 0)},
            )
            for name in SWITCHES
            if name != without
        }
        self.now += STEP_NS
        self.finder.read(counts, self.now, dark)
        return self.finder.cuts(self.now)

    def _at(self, name: str, end: int) -> list[tuple[tuple[str, str], tuple[int, int]]]:
        return [(way, ports) for way, ports in self._ports.items() if way[end] == name]


@pytest.fixture
def links() -> Links:
    links = Links()
    for way in (UP, UP[::-1]):
        links.send(way, 100)
    assert links.read() == ()
    return links


@pytest.mark.parametrize("way", [UP, UP[::-1]])
def test_frames_in_a_row_that_do_not_arrive_are_a_cut_of_that_way(
    links: Links, way: tuple[str, str]
) -> None:
    for _ in range(LOST_FRAMES):
        links.send(way, 1, arriving=0)
        links.send(way[::-1], 1)
        assert links.read() == ()
    # What has just departed may be under way: one more reading is waited for.
    (cut,) = links.read()
    assert (cut, cut.lost) == (Cut("s1-s0", *way), LOST_FRAMES)
    assert cut.text == f"nothing that {way[0]} sends to {way[1]} arrives"


def test_one_frame_that_arrives_ends_it(links: Links) -> None:
    links.send(UP, 3 * LOST_FRAMES, arriving=0)
    links.read()
    assert links.read()
    links.send(UP, 1)
    assert links.read() == ()
    links.send(UP, LOST_FRAMES - 1, arriving=0)
    links.read()
    assert links.read() == ()


def test_a_burst_that_is_under_way_is_not_lost(links: Links) -> None:
    """However much departs between two readings, it arrives before the one after."""
    for _ in range(20):
        links.send(UP, 1000, arriving=0)
        assert links.read() == ()
        links.arrived[UP] += 1000
        assert links.read() == ()


def test_an_idle_link_is_not_cut(links: Links) -> None:
    for _ in range(200):
        assert links.read() == ()


def test_loss_is_not_a_cut() -> None:
    """A fifth of all frames, in small numbers between readings as where a job stands still."""
    rng = random.Random(5)
    for _ in range(20):
        links = Links()
        for _ in range(500):
            for way in (UP, UP[::-1], ("s2", "s0"), ("s0", "s2")):
                frames = rng.randrange(6)
                links.send(way, frames, sum(rng.random() >= 0.2 for _ in range(frames)))
            assert links.read() == ()


def test_a_switch_that_was_away_is_not_blamed_on_its_links(links: Links) -> None:
    """What is sent to it is lost, and its counters begin anew."""
    for _ in range(5):
        links.send(UP, LOST_FRAMES, arriving=0)
        assert links.read(without="s0") == ()
    for way in links.arrived:
        links.arrived[way] *= way[1] != "s0"
        links.departed[way] *= way[0] != "s0"
    for _ in range(5):
        assert links.read() == ()


def test_what_is_cut_stays_so_while_it_is_not_asked_for_and_is_forgotten(links: Links) -> None:
    links.send(UP, LOST_FRAMES, arriving=0)
    links.read()
    assert links.read(without="s2")
    assert links.read(without="s0")
    sent_at = 2 * STEP_NS
    assert links.finder.cuts(sent_at + FORGET_NS - 1)
    assert links.finder.cuts(sent_at + FORGET_NS) == ()


def test_a_link_without_a_carrier_is_cut_both_ways(links: Links) -> None:
    (cut,) = links.read(dark=("s1-s0",))
    assert (cut.link, {cut.sender, cut.receiver}, cut.lost) == ("s1-s0", {"s0", "s1"}, 0)
    assert cut.text == "link s1-s0 has no carrier"
    assert links.read() == ()


def test_only_ports_between_the_switches_asked_for_are_read(links: Links) -> None:
    ports = {
        name: {link.lower_port for link in NETWORK.links if link.lower == name}
        | {link.upper_port for link in NETWORK.links if link.upper == name}
        for name in SWITCHES
    }
    asked = {name: set(these) for name, these in links.finder.ports(SWITCHES).items()}
    assert asked == ports
    assert set(links.finder.ports(["s0", "s2"])) == {"s0", "s2"}
    assert links.finder.ports(["s1", "s2"]) == {}


def test_cuts_are_told_apart_by_where_they_are() -> None:
    cut = Cut("a-b", "a", "b", 12)
    assert cut == replace(cut, lost=13)
    assert cut != Cut("a-b", "b", "a", 12)


def test_a_link_that_was_mended_is_cut_no_more_though_nobody_has_used_it(links: Links) -> None:
    links.read()
    for _ in range(2):
        links.send(UP, LOST_FRAMES, arriving=0)
        found = links.read()
    assert [cut.link for cut in found] == ["s1-s0"]
    links.finder.forget("s2", "s0")
    assert links.read() == found
    links.finder.forget("s0", "s1")
    assert links.read() == ()
