"""The two back ends on the same random entries and packets: the same copies, counters, registers.

    python -m tests.differential.backends [--count N] [--seed N] [--only PROGRAM]

`--count` packets for every program of ours. A program that C is not made for is named.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from softswitch import Device, ir
from softswitch.entries import (
    ActionCall,
    CloneSession,
    CounterData,
    Digest,
    ExactMatch,
    LpmMatch,
    Match,
    RangeMatch,
    Replica,
    TableEntry,
    TernaryMatch,
)
from softswitch.errors import SoftswitchError
from softswitch.native import NativeUnavailable
from softswitch.queued import QueuedPacket
from tests.differential.packets import Domains, PacketMaker
from tests.fuzz.inputs import CPU_PORT, harmed, pipeline, program_names

_ENTRIES = 10
_PORTS = range(1, 9)
_WAITING = 50
_QUEUES = 4
_REWRITES = 0.02
"""How often an entry, a default action or a group changes between two packets."""


@dataclass(frozen=True, slots=True)
class DifferenceError(Exception):
    """The first packet that the back ends treat differently."""

    text: str

    def __str__(self) -> str:
        return self.text


class Filled:
    """One program on one or more back ends, and what writes the same to all of them."""

    def __init__(self, name: str, seed: int, backends: Sequence[str | None]) -> None:
        """NativeUnavailable if the program does not run on one of them."""
        self.rng = random.Random(f"{name} {seed}")
        self.devices = tuple(
            Device(1, cpu_port=CPU_PORT, queues=_QUEUES, backend=backend) for backend in backends
        )
        for device in self.devices:
            device.load_pipeline(pipeline(name))
        self.program = self.devices[0].program
        self.domains = Domains(self.rng)
        self.maker = PacketMaker(
            self.program, self.rng, self.domains, lambda fields, rng: None, anything=True
        )

    # --- writes ---------------------------------------------------------------------------------

    def fill(self) -> None:
        """Entries, default actions, groups, sessions and value sets."""
        for _ in range(_ENTRIES):
            for table in self.program.tables.values():
                self._entry(table)
        for _ in range(3):
            self._replicas()
        for table in self.program.tables.values():
            self._default(table)
        for name, found in self.program.value_sets.items():
            members = frozenset(self.domains.draw("set", name, found.width) for _ in range(4))
            for device in self.devices:
                device.set_value_set(name, members)

    def _each(self, method: str, *arguments: object) -> None:
        """The same call on each; all refuse it in the same words, or none."""
        refused = []
        for device in self.devices:
            try:
                getattr(device, method)(*arguments)
                refused.append("")
            except SoftswitchError as error:
                refused.append(str(error))
        if len(set(refused)) > 1:
            raise DifferenceError(f"{method}{arguments}: {refused}")

    def rewrite(self) -> None:
        """Change something."""
        tables = list(self.program.tables.values())
        if not tables or self.rng.random() < 0.2:
            self._replicas()
        elif self.rng.random() < 0.2:
            self._default(self.rng.choice(tables))
        else:
            self._entry(self.rng.choice(tables))

    def _call(self, table: ir.Table) -> ActionCall:
        action = self.program.actions[self.rng.choice(table.actions)]
        params = tuple(
            self.rng.choice(_PORTS) if name == "port" else self.domains.draw("", name, width)
            for name, width in zip(action.param_names, action.param_widths, strict=True)
        )
        return ActionCall(action.name, params)

    def _default(self, table: ir.Table) -> None:
        if table.actions and table.profile is None:
            self._each("set_default_action", table.name, self._call(table))

    def _entry(self, table: ir.Table) -> None:
        if not table.keys or not table.actions or table.profile is not None:
            return
        known = self.devices[0].read_entries(table.name)
        choice = self.rng.random()
        if known and choice < 0.3:
            old = self.rng.choice(known)
            self._each("delete_entry", table.name, old.matches, old.priority)
        elif known and choice < 0.6:
            old = self.rng.choice(known)
            entry = TableEntry(table.name, old.matches, self._call(table), old.priority)
            self._each("modify_entry", entry)
        else:
            matches = tuple(self._match(key) for key in table.keys)
            priority = self.rng.randint(1, 5) if table.kind in ("ternary", "range") else 0
            entry = TableEntry(table.name, matches, self._call(table), priority)
            self._each("insert_entry", entry)

    def _match(self, key: ir.Key) -> Match:
        owner = key.expr.header
        name = key.expr.field if isinstance(key.expr, ir.FieldRef) else "valid"
        value, full = self.domains.draw(owner, name, key.width), (1 << key.width) - 1
        match key.kind:
            case "exact":
                return ExactMatch(value)
            case "lpm":
                length = self.rng.choice([0, 1, key.width // 2, key.width])
                return LpmMatch(value & (full ^ full >> length), length)
            case "ternary":
                mask = self.rng.choice([0, full, full & ~1, self.rng.getrandbits(key.width)])
                return TernaryMatch(value & mask, mask)
        low, high = sorted((value, self.domains.draw(owner, name, key.width)))
        return RangeMatch(low, high)

    def _replicas(self) -> None:
        pairs = {(self.rng.choice(_PORTS), self.rng.randint(0, 9)) for _ in range(4)}
        copies = tuple(Replica(port, instance) for port, instance in sorted(pairs))
        for number in self.rng.sample(range(1, 8), 3):
            self._each("create_multicast_group", number, copies)
            self._each("modify_multicast_group", number, copies)
            session = CloneSession(number, copies[:2], self.rng.choice([0, 0, 20]))
            self._each("create_clone_session", session)
            self._each("modify_clone_session", session)
        self._each("delete_multicast_group", self.rng.randint(1, 7))
        self._each("delete_clone_session", self.rng.randint(1, 7))

    def packets(self) -> Iterator[bytes]:
        """Packets without end: most as the parser expects them, some random, cut or longer."""
        return harmed(self.maker, self.rng)


class Pair(Filled):
    """One program on both back ends, and what compares them."""

    def __init__(self, name: str, seed: int) -> None:
        """NativeUnavailable if the program does not run natively."""
        super().__init__(name, seed, ("native", "python"))
        self.digests: tuple[list[Digest], list[Digest]] = ([], [])
        for device, digests in zip(self.devices, self.digests, strict=True):
            device.on_digest = digests.append

    def run(self, count: int) -> None:
        """Run packets, with writes in between; DifferenceError names the first that differs."""
        for number, packet in zip(range(count), self.packets(), strict=False):
            if self.rng.random() < _REWRITES:
                self.rewrite()
            port = CPU_PORT if self.rng.random() < 0.05 else self.rng.choice(_PORTS)
            now = number * 7
            native, python = (d.process(port, packet, now) for d in self.devices)
            if native != python:
                shown = [[(p, data.hex()) for p, data in out] for out in (native, python)]
                raise DifferenceError(
                    f"packet {number}, {packet.hex()} at port {port}, leaves natively as "
                    f"{shown[0]} and from Python as {shown[1]}"
                )
        self.compare()

    def run_batches(self, count: int) -> None:
        """The same in batches of frames."""
        source = self.packets()
        while count > 0:
            frames = [next(source) for _ in range(min(count, self.rng.randint(1, 40)))]
            count -= len(frames)
            port = self.rng.choice(_PORTS)
            native, python = (d.process_batch(port, frames, count) for d in self.devices)
            if native != python:
                raise DifferenceError(f"a batch of {len(frames)} frames leaves differently")
        self.compare()

    def run_queued(self, count: int) -> None:
        """The same in two steps, with queues that wait in between, in another order."""
        waiting: list[tuple[QueuedPacket, QueuedPacket]] = []
        source = self.packets()
        for number in range(count):
            packet, port = next(source), self.rng.choice(_PORTS)
            self._hold(waiting, [d.enqueue(port, packet, number * 7) for d in self.devices])
            if self.rng.random() < _REWRITES:
                self.rewrite()
            while waiting and self.rng.random() < 0.6:
                pair = waiting.pop(self.rng.randrange(len(waiting)))
                told = number * 7 + self.rng.randrange(50), self.rng.randrange(64), 3
                left = [d.dequeue(p, *told) for d, p in zip(self.devices, pair, strict=True)]
                if left[0].frame != left[1].frame:
                    raise DifferenceError(f"packet {number} leaves its queue differently")
                self._hold(waiting, [departure.queued for departure in left])
            del waiting[_WAITING:]
        self.compare()

    def _hold(
        self,
        waiting: list[tuple[QueuedPacket, QueuedPacket]],
        copies: Sequence[Sequence[QueuedPacket]],
    ) -> None:
        shown = [
            [(p.port, p.priority, p.length, p.enqueued_us, p.came_by, p.passes) for p in queued]
            for queued in copies
        ]
        if shown[0] != shown[1]:
            raise DifferenceError(f"queued natively {shown[0]}, by Python {shown[1]}")
        waiting += zip(*copies, strict=True)

    def compare(self) -> None:
        """DifferenceError if counters, registers, entries or digests are not the same."""
        states = [_state(device) for device in self.devices]
        changed = {key for key in states[0] if states[0][key] != states[1][key]}
        if changed:
            key = min(changed)
            raise DifferenceError(f"{key}: natively {states[0][key]}, in Python {states[1][key]}")
        if self.digests[0] != self.digests[1]:
            raise DifferenceError("the digests differ")


def _state(device: Device) -> dict[str, object]:
    """All that packets may have changed, by name."""
    found: dict[str, object] = {}
    program = device.program
    for name, register in program.registers.items():
        found[f"register {name}"] = [device.register(name, i) for i in range(register.size)]
    for name, counter in program.counters.items():
        if counter.table is None:
            found[f"counter {name}"] = device.counters(name)
    for table in program.tables.values():
        entries = device.read_entries(table.name)
        found[f"table {table.name}"] = entries
        found[f"default of {table.name}"] = device.default_action(table.name)
        if not table.has_counter:
            continue
        cells: list[CounterData] = [device.direct_counter(table.name, None)]
        cells += [device.direct_counter(table.name, e.matches, e.priority) for e in entries]
        found[f"direct counter of {table.name}"] = cells
    return found


def compare(name: str, count: int, seed: int) -> None:
    """One program; DifferenceError or NativeUnavailable."""
    pair = Pair(name, seed)
    pair.fill()
    pair.run(count)
    pair.run_batches(count // 4)
    pair.run_queued(count // 4)


def main() -> int:
    """0 if the back ends agree, 1 if not."""
    arguments = argparse.ArgumentParser(description="the two back ends on random packets")
    arguments.add_argument("--count", type=int, default=20_000, help="packets a program")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only")
    chosen = arguments.parse_args()
    bad = 0
    for name in program_names():
        if chosen.only not in (None, name):
            continue
        start = time.perf_counter()
        try:
            compare(name, chosen.count, chosen.seed)
            text = f"{chosen.count} packets, the same"
        except NativeUnavailable as error:
            text = str(error)
        except DifferenceError as error:
            bad += 1
            text = f"seed {chosen.seed}: {error}"
        print(f"{name}: {text}, {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
