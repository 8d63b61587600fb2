"""Links between live switches that lose everything, found by the counters at both their ends. Pure.

A switch counts what arrives at each port, and what departs. Loss, however much, lets something
through before long; so does a link that is idle, since nothing departs into it. What loses a number
of frames in a row, with none between that arrived, is cut. Each direction is judged by itself.

    reading    arrived at all switches, and only then departed
    since      what had departed when the arrivals were first read as they still are: all of it has
               left after the last frame that arrived
    lost       what had departed at the reading before this one, less that: it has had the time
               between two readings to arrive, and has not

A switch that does not answer says nothing of its links, and its counters begin anew when it is
back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from topologies.network import Network
from topologies.rerooting import link_name

LOST_FRAMES = 10
"""So many in a row are lost by chance, at a loss of 20 %, once in ten million."""
FORGET_NS = 60_000_000_000
"""A link that nothing has been sent into for so long may be whole again."""


@dataclass(frozen=True, slots=True)
class PortCounts:
    """Frames by port of a switch; `departed` was read after the `arrived` of all switches."""

    arrived: Mapping[int, int]
    departed: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Cut:
    """A direction of a link that carries nothing.

    Attributes:
        link: its name, whatever the direction.
        lost: frames in a row; 0 where it has no carrier, and nobody counted.
    """

    link: str
    sender: str
    receiver: str
    lost: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """It in words."""
        if not self.lost:
            return f"link {self.link} has no carrier"
        return f"nothing that {self.sender} sends to {self.receiver} arrives"


@dataclass(frozen=True, slots=True)
class _End:
    switch: str
    port: int


@dataclass(frozen=True, slots=True)
class _Way:
    """What is known of one direction; `sent_at`: when more had departed than before."""

    arrived: int
    since: int
    departed: int
    sent_at: int
    lost: int = 0

    @property
    def is_cut(self) -> bool:
        return self.lost >= LOST_FRAMES

    def then(self, departed: int, arrived: int, now: int) -> _Way:
        """What is known after another reading."""
        if arrived != self.arrived or departed < self.departed:
            return _Way(arrived, departed, departed, now)
        sent_at = now if departed > self.departed else self.sent_at
        return _Way(arrived, self.since, departed, sent_at, self.departed - self.since)


class CutFinder:
    """Compares the ends of all links, reading by reading."""

    def __init__(self, network: Network) -> None:
        self._links: dict[tuple[_End, _End], str] = {}
        for link in network.links:
            lower, upper = _End(link.lower, link.lower_port), _End(link.upper, link.upper_port)
            name = link_name(link.lower, link.upper)
            self._links |= {(lower, upper): name, (upper, lower): name}
        self._ways: dict[tuple[_End, _End], _Way] = {}
        self._dark: frozenset[str] = frozenset()

    def ports(self, switches: Collection[str]) -> dict[str, tuple[int, ...]]:
        """The ports between these switches, by switch."""
        ports: dict[str, set[int]] = {}
        for one, other in self._links:
            if one.switch in switches and other.switch in switches:
                ports.setdefault(one.switch, set()).add(one.port)
        return {name: tuple(sorted(these)) for name, these in ports.items()}

    def read(self, counts: Mapping[str, PortCounts], now: int, dark: Collection[str] = ()) -> None:
        """Take a reading in, of a time in nanoseconds; `dark`: links that have no carrier."""
        self._dark = frozenset(dark)
        for pair in self._links:
            sender, receiver = pair
            before = self._ways.get(pair)
            if sender.switch in counts and receiver.switch in counts:
                departed = counts[sender.switch].departed[sender.port]
                arrived = counts[receiver.switch].arrived[receiver.port]
                new = _Way(arrived, departed, departed, now)
                self._ways[pair] = new if before is None else before.then(departed, arrived, now)
            elif before is not None and not before.is_cut:
                # Whoever does not answer may start anew, and what is lost meanwhile is its own.
                del self._ways[pair]

    def forget(self, one: str, other: str) -> None:
        """Take back what is known of the link between two switches: it has been made whole."""
        for pair in list(self._ways):
            if {end.switch for end in pair} == {one, other}:
                del self._ways[pair]

    def cuts(self, now: int) -> tuple[Cut, ...]:
        """The directions that carry nothing, in the order of the network's links."""
        found: list[Cut] = []
        for pair, name in self._links.items():
            sender, receiver = pair
            way = self._ways.get(pair)
            if name in self._dark:
                # One way stands for both.
                if name not in {cut.link for cut in found}:
                    found.append(Cut(name, sender.switch, receiver.switch))
            elif way is not None and way.is_cut and now - way.sent_at < FORGET_NS:
                found.append(Cut(name, sender.switch, receiver.switch, way.lost))
        return tuple(found)
