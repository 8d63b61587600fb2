"""One random case on two switches: what differs, byte for byte."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from finsy.proto import p4r

from tests.differential.cases import Case, sentinel
from tests.differential.entries import EntryMaker
from tests.differential.packets import MIN_FRAME, Domains, PacketMaker, as_received
from tests.packet.targets import (
    ELECTION_ID,
    PORTS,
    SENTINEL_MARK,
    SoftswitchTarget,
    Target,
    by_port,
)
from tests.packet.targets_stub import StubClient

_BURST = 24
_PASSES = 2
Frames = dict[int, list[bytes]]


class WithPorts(SoftswitchTarget):
    """The software switch, with its frames as a socket on a Linux interface would see them."""

    def _receive(self, seconds: float) -> tuple[int, bytes] | None:
        while (found := super()._receive(seconds)) is not None:
            port, frame = found
            seen = as_received(frame)
            if port in PORTS and seen is not None:
                return port, seen
        return None


@dataclass(frozen=True, slots=True)
class Result:
    """What a switch did: frames by burst and port, then the counters that it is left with."""

    left: list[Frames]
    counters: dict[bytes, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one case does: updates, then bursts of packets, each burst to one port."""

    updates: tuple[p4r.Update, ...]
    bursts: tuple[tuple[int, tuple[bytes, ...]], ...]


def traffic(case: Case, seed: int, count: int) -> Traffic:
    """The same for the same seed, on every machine."""
    rng = random.Random(f"{case.name} {seed}")
    domains = Domains(rng)
    program = case.program
    updates = EntryMaker(program, case.p4info, rng, domains).updates()
    maker = PacketMaker(program, rng, domains, case.adjust, anything=not case.excluded)
    bursts: list[tuple[int, tuple[bytes, ...]]] = []
    while count > 0:
        size = min(count, rng.randint(10, _BURST))
        bursts.append((rng.choice(PORTS), tuple(maker.make() for _ in range(size))))
        count -= size
    return Traffic(tuple(updates), tuple(bursts))


def prepare(target: Target, case: Case, updates: Sequence[p4r.Update]) -> None:
    """Push the program and write the updates; AssertionError names the first that is refused."""
    target.push(case.artefacts, sentinel())
    with StubClient(target.address) as client:
        codes = client.write(ELECTION_ID, *updates)
    for update, code in zip(updates, codes, strict=True):
        assert code == "OK", f"{target.kind} answers {code} to {update}"


def run(target: Target, case: Case, planned: Traffic) -> Result:
    """Send everything; frames that no Linux interface carries are left out.

    A burst is over before the next begins: bmv2 takes packets of different ports in no order.
    """
    prepare(target, case, planned.updates)
    left: list[Frames] = []
    for port, frames in planned.bursts:
        for frame in frames:
            target.send(port, frame)
        left.append(_by_port(target, case, port))
    return Result(left, _counters(target, case))


def _counters(target: Target, case: Case) -> dict[bytes, tuple[int, int]]:
    """(packets, bytes) of every cell and entry, by what identifies it."""
    info = case.p4info
    found: dict[bytes, tuple[int, int]] = {}
    with StubClient(target.address) as client:
        for counter in info.counters:
            wanted = p4r.Entity()
            wanted.counter_entry.counter_id = counter.preamble.id
            for entity in client.read(wanted):
                cell = entity.counter_entry
                key = f"{counter.preamble.name}[{cell.index.index}]"
                found[key.encode()] = (cell.data.packet_count, cell.data.byte_count)
        for direct in info.direct_counters:
            wanted = p4r.Entity()
            wanted.direct_counter_entry.table_entry.table_id = direct.direct_table_id
            for entity in client.read(wanted):
                entry = entity.direct_counter_entry
                row = p4r.TableEntry(
                    table_id=entry.table_entry.table_id,
                    match=sorted(entry.table_entry.match, key=lambda m: m.field_id),
                    priority=entry.table_entry.priority,
                )
                key_bytes = row.SerializeToString(deterministic=True)
                found[key_bytes] = (entry.data.packet_count, entry.data.byte_count)
    return found


def _by_port(target: Target, case: Case, port: int) -> Frames:
    left = target.collect()
    if not case.ordered:
        # a packet that passes twice is overtaken by the sentinels of its first pass
        for _ in range(_PASSES):
            target.send(port, sentinel().frame(PORTS[0], SENTINEL_MARK + bytes(8)))
            left += target.collect()
    ordered, found = case.ordered, by_port(left)
    return {
        port: kept if ordered else sorted(kept)
        for port, frames in found.items()
        if (kept := [frame for frame in frames if len(frame) >= MIN_FRAME])
    }


def first_difference(one: Target, other: Target, case: Case, planned: Traffic) -> str:
    """Send packet by packet, and describe the first that leaves differently."""
    for target in (one, other):
        prepare(target, case, planned.updates)
    packets = [(port, frame) for port, frames in planned.bursts for frame in frames]
    for number, (port, frame) in enumerate(packets):
        left: list[Frames] = []
        for target in (one, other):
            target.send(port, frame)
            left.append(_by_port(target, case, port))
        if left[0] != left[1]:
            shown = [{p: [f.hex() for f in fs] for p, fs in found.items()} for found in left]
            return (
                f"packet {number}, {frame.hex()} at port {port}, leaves {one.kind} as {shown[0]}"
                f" and {other.kind} as {shown[1]}"
            )
    return ""


def _in_bursts(ours: list[Frames], theirs: list[Frames]) -> str:
    """What differs when packets follow each other closely."""
    shown: list[str] = []
    for number, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        for port in sorted(left.keys() | right.keys()):
            here, there = Counter(left.get(port, [])), Counter(right.get(port, []))
            if left.get(port) != right.get(port):
                more, less = ([f.hex() for f in c.elements()] for c in (here - there, there - here))
                shown.append(f"burst {number}, port {port}: +{more} -{less}")
    return "; ".join(shown)


def differs(one: Target, other: Target, case: Case, seed: int, count: int) -> str:
    """Empty if both switches did the same, else what differs, with the seed."""
    planned = traffic(case, seed, count)
    ours, theirs = (run(target, case, planned) for target in (one, other))
    if ours == theirs:
        return ""
    detail = first_difference(one, other, case, planned) or _in_bursts(ours.left, theirs.left)
    if ours.counters != theirs.counters:
        changed = ours.counters.items() ^ theirs.counters.items()
        detail += f"; counters {sorted(changed)}"
    return f"{case.name}, seed {seed}: {detail}"
