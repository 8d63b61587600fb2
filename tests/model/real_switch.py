"""The compiled program in the place of the model's switch: its registers set and read as words.

The value of a sum is put into lanes that tell it apart: lane *i* counts worker *i*, lane 3 + *c*
the contributions to chunk *c*.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import p4src
from controller.compile import JobPlan, compile_programs, heard_sources, request_bits
from controller.placement import Tree
from p4src.constants import LANES, Kind
from softswitch import Switch
from tests.model import layout as at
from tests.model import rules
from tests.unit.controller.trees import topology_of
from topologies.network import ip_text, mac_text, wire
from traffic.message import (
    DESTINATION_SOURCE,
    Flow,
    Message,
    decode_frame,
    encode_frame,
    group_ip,
    group_mac,
    pack_lanes,
    unpack_lanes,
)

PROGRAM = Path(p4src.__file__).parent / "build" / "bluetree.json"
NETWORK = wire(topology_of(Tree(parent=[-1, 0], rate=[1, 1], load=[1, 2])))
SOURCES = (*(host.source for host in NETWORK.workers), *(NETWORK.interval[v][0] for v in (1, 0)))
"""Source ids in the order of the model's numbers."""
JOB, WINDOW = 1, 2
KINDS = {at.CONTRIBUTE: Kind.CONTRIBUTE, at.RESULT: Kind.RESULT, at.REQUEST: Kind.REQUEST}
_WORD_BYTES = 4 * LANES


def lanes_of(value: int) -> bytes:
    """The lanes of a sum."""
    counts = [value >> 2 * worker & 3 for worker in range(3)]
    chunks = [0] * 4
    chunks[value >> 6] = sum(counts)
    return pack_lanes([*counts, *chunks, *([0] * (LANES - 7))])


def value_of(lanes: bytes) -> int:
    """The value of a sum that the model can have; any other is `MIXED`."""
    numbers = unpack_lanes(lanes)
    for chunk in range(4):
        value = chunk << 6 | sum((numbers[worker] & 3) << 2 * worker for worker in range(3))
        if lanes_of(value) == lanes:
            return value
    return at.MIXED


def nothing_yet(without: int) -> list[int]:
    """A state with nothing in it, whose new epoch is without a set of workers."""
    t = [0] * at.WIDTH
    t[at.MEMBERS] = without << 3
    return t


def plans_of(p: list[int], without: int = 0) -> list[JobPlan]:
    """The allocations of the two epochs; the new one is without a set of workers."""
    gone = [frozenset[int](), frozenset(rank for rank in range(3) if without >> rank & 1)]
    blue = [frozenset(v for v in (0, 1) if p[at.BLUE_OLD + e] >> v & 1) for e in (0, 1)]
    return [JobPlan(JOB, e + 1, blue[e], 0, WINDOW, absent=gone[e]) for e in (0, 1)]


class RealSwitch:
    """One switch of the model's network with the entries of both epochs; see `nothing_yet`."""

    def __init__(self, switch: int, p: list[int], without: int = 0) -> None:
        plans = plans_of(p, without)
        blue = [plan.blue for plan in plans]
        self._t = nothing_yet(without)
        program = compile_programs(NETWORK, plans)[switch]
        self.switch = switch
        self._device = Switch.load(PROGRAM)
        self._bits: dict[int, dict[int, int]] = {0: {}, 1: {}}
        for entry in program.entries:
            match, params = dict(entry.match), dict(entry.params)
            self._device.insert(entry.table, match, entry.action, params)
            if entry.table == "blue_sources":
                epoch, source = match["epoch"], match["source"]
                assert isinstance(epoch, int)
                assert isinstance(source, int)
                self._bits[epoch - 1][source] = params["source_bit"]
        for group in program.groups:
            self._device.multicast_group(group.id, group.replicas)
        self._arrivals: dict[int, tuple[int, bytes]] = {}
        # By epoch: the ranks behind each bit of a request that reaches this switch, and leaves it.
        self._asked, self._asks = [], []
        for e in (0, 1):
            heard = heard_sources(NETWORK, blue[e], plans[e].present(NETWORK))
            ranks = {s.source: sum(1 << r for r in s.ranks) for sources in heard for s in sources}
            numbered = request_bits(NETWORK, blue[e], heard)
            self._asked.append({1 << bit: ranks[s] for s, bit in numbered[0].items()})
            own = numbered[switch] if switch in blue[e] else numbered[0]
            self._asks.append({1 << bit: ranks[s] for s, bit in own.items()})
        link = NETWORK.links[0]
        self._hosts = {h.port: at.W0 + h.rank for h in NETWORK.workers if self._is_here(h.switch)}
        self._above = NETWORK.parent_port[switch]
        self._below = link.upper_port

    def _is_here(self, name: str) -> bool:
        return NETWORK.topology.overlay.names[self.switch] == name

    def set_word(self, word: int) -> None:
        """Put a slot of the model into slot 0."""
        tag, sources, answered = word & 15, word >> 4 & 7, word >> 15 & 15
        bits = 0
        for source, bit in self._bits[(tag - 1) >> 2].items() if tag else ():
            mask = at.MASKS[SOURCES.index(source)]
            bits |= bit if mask & sources else 0
        head = Kind.RESULT << 56 | DESTINATION_SOURCE << 32 | 3 << 16
        self._set("slot_tag", _real_tag(tag))
        self._set("slot_sources", bits)
        self._set("slot_weight", sources.bit_count())
        self._set("slot_lanes", int.from_bytes(lanes_of(word >> 7 & 255), "big"))
        self._set("answer_tag", _real_tag(answered))
        self._set("answer_head", head if answered else 0)
        self._set("answer_lanes", int.from_bytes(lanes_of(word >> 19 & 255), "big"))

    def _set(self, name: str, value: int) -> None:
        self._device.device.set_register(name, 0, value)

    def word(self) -> int:
        """Slot 0 as the model has it."""
        tag = _tag(self._device.register("slot_tag", 0))
        bits = self._device.register("slot_sources", 0)
        sources = 0
        for source, bit in self._bits[(tag - 1) >> 2].items() if tag else ():
            sources |= at.MASKS[SOURCES.index(source)] if bits & bit else 0
        assert self._device.register("slot_weight", 0) == sources.bit_count()
        answered = _tag(self._device.register("answer_tag", 0))
        return (
            tag
            | sources << 4
            | self._value("slot_lanes") << 7
            | answered << 15
            | self._value("answer_lanes") << 19
        )

    def _value(self, name: str) -> int:
        return value_of(self._device.register(name, 0).to_bytes(_WORD_BYTES, "big"))

    def can_say(self, epoch: int, wanted: int) -> bool:
        """Whether a request that arrives here can ask for just these workers."""
        said = 0
        for ranks in self._asked[epoch].values():
            said |= ranks if ranks & wanted else 0
        return said == wanted

    def deliver(self, message: int) -> list[int]:
        """What leaves the switch when a message comes, in the model's numbers, sorted."""
        if message not in self._arrivals:
            self._arrivals[message] = self._arrival(message)
        out = self._device.process(*self._arrivals[message])
        return sorted(self._heard(leaving, decode_frame(frame)) for leaving, frame in out)

    def _arrival(self, message: int) -> tuple[int, bytes]:
        """The port that a message comes in at, and its frame."""
        kind, source = message >> 3 & 3, message >> 5 & 7
        chunk, epoch, flags = message >> 8 & 3, message >> 10 & 1, message >> 11 & 3
        value = message >> 13
        if kind == at.REQUEST:
            bits = sum(bit for bit, ranks in self._asked[epoch].items() if ranks & value)
            lanes = bits.to_bytes(_WORD_BYTES, "big")
        else:
            lanes = lanes_of(value)
        up = kind == at.CONTRIBUTE
        told = Message(
            KINDS[kind].value,
            flags,
            JOB,
            SOURCES[source] if up else DESTINATION_SOURCE,
            epoch + 1,
            chunk,
            self._weight(source if up else at.FROM_S0, epoch),
            lanes,
        )
        destination, group = ip_text(NETWORK.destination.ip), group_ip(JOB)
        mac = mac_text(NETWORK.destination.mac)
        if up:
            host = NETWORK.workers[min(source, 2)]
            flow = Flow(mac, mac, ip_text(host.ip), destination, host.udp_port)
            ports = [port for port, node in self._hosts.items() if node == at.W0 + source]
            port = ports[0] if ports else self._below
        else:
            flow = Flow(mac, group_mac(group), destination, group, 9590)
            port = self._above
        return port, encode_frame(flow, told)

    def _weight(self, source: int, epoch: int) -> int:
        return rules.speaks_for(self._t, source, epoch).bit_count()

    def _heard(self, port: int, message: Message) -> int:
        kind = {real.value: kind for kind, real in KINDS.items()}[message.kind]
        epoch = message.epoch - 1
        to = rules.up(self.switch) if port == self._above else self._hosts.get(port, at.S1)
        if kind == at.REQUEST:
            asked = int.from_bytes(message.lanes, "big")
            numbering = self._asked if message.flags & at.DIRECT else self._asks
            value = 0
            for bit, ranks in numbering[epoch].items():
                value |= ranks if asked & bit else 0
        else:
            value = value_of(message.lanes)
        source = SOURCES.index(message.source) if kind == at.CONTRIBUTE else 0
        if kind == at.CONTRIBUTE:
            assert message.weight == self._weight(source, epoch)
        flags = message.flags & (at.DIRECT | at.LATE)
        head = to | kind << 3 | source << 5 | message.chunk << 8 | epoch << 10 | flags << 11
        return head | value << 13


def _real_tag(tag: int) -> int:
    return 0 if tag == 0 else ((tag - 1 >> 2) + 1) << 32 | (tag - 1 & 3)


def _tag(real: int) -> int:
    return 0 if real == 0 else rules.tag_of((real >> 32) - 1, real & 0xFFFFFFFF)


def words(switch: int, p: list[int], without: int = 0) -> Iterator[int]:
    """Every content that slot 0 of a switch can have, with chunks 0 and 2."""
    own = at.FROM_S0 if switch == at.S0 else at.FROM_S1
    tags = [(e, c) for e in (0, 1) for c in (0, 2) if p[at.BLUE_OLD + e] >> switch & 1]
    t = nothing_yet(without)
    slots = [0]
    for e, c in tags:
        heard = [rules.speaks_for(t, s, e) for s in range(4) if rules.sums(t, p, switch, e, s)]
        for chosen in range(1, 1 << len(heard)):
            sources = sum(mask for i, mask in enumerate(heard) if chosen >> i & 1)
            assert sources & ~at.MASKS[own] == 0
            slots.append(rules.tag_of(e, c) | sources << 4 | rules.once_each(sources, c) << 7)
    answers = [0, *(rules.tag_of(e, c) << 15 | rules.sum_of(t, c, e) << 19 for e, c in tags)]
    for slot in slots:
        yield from (slot | answer for answer in answers)


def messages(switch: int, real: RealSwitch, without: int = 0) -> Iterator[int]:
    """Every message about chunks 0 and 2 that can come to a switch."""
    t = nothing_yet(without)
    sources = range(4) if switch == at.S0 else (1, 2)
    for epoch in (0, 1):
        for chunk in (0, 2):
            head = switch | chunk << 8 | epoch << 10
            for source in sources:
                value = rules.once_each(rules.speaks_for(t, source, epoch), chunk)
                for flags in range(4) if rules.speaks_for(t, source, epoch) else ():
                    yield head | at.CONTRIBUTE << 3 | source << 5 | flags << 11 | value << 13
            yield head | at.RESULT << 3 | rules.sum_of(t, chunk, epoch) << 13
            for wanted in range(1, 8):
                if real.can_say(epoch, wanted):
                    for flags in (0, at.DIRECT):
                        yield head | at.REQUEST << 3 | flags << 11 | wanted << 13
