"""One program follows another on a device without a gap: what the data plane holds goes on.

The new state takes over the very cells of the old one, not copies: a packet that still runs on the
old program counts into the same counter as the next one, on the new.
"""

from collections.abc import Mapping
from typing import TypeVar

from softswitch.state import State
from softswitch.tables import Stored

Declared = TypeVar("Declared")
Held = TypeVar("Held")


def succeed(new: State, old: State) -> None:
    """Give `new` the cells of `old` that both programs declare alike; neither needs to stop.

    Indirect and direct counters and meters, registers, hashes and the ages of entries. Both must
    hold the same entries where they are to go on.
    """
    new.now_us = old.now_us
    new.without_queue = old.without_queue
    new.registers = _kept(
        new.program.registers, old.program.registers, new.registers, old.registers
    )
    counters = new.program.counters, old.program.counters
    new.packets = _kept(*counters, new.packets, old.packets)
    new.bytes = _kept(*counters, new.bytes, old.bytes)
    new.meters = _kept(new.program.meters, old.program.meters, new.meters, old.meters)
    for name, hashed in old.hashes.items():
        if new.program.calculations.get(name) == old.program.calculations.get(name):
            new.hashes[name] = hashed
    for at, name in enumerate(new.program.tables):
        if name in old.tables:
            _succeed_table(new, old, name)
            old_at = list(old.program.tables).index(name)
            new.defaults[at] = _with_cell(new.defaults[at], old.defaults[old_at])


def _kept(
    new: Mapping[str, Declared],
    old: Mapping[str, Declared],
    made: tuple[Held, ...],
    held: tuple[Held, ...],
) -> tuple[Held, ...]:
    """For each declaration of `new` what is held for it, if `old` has it too, else what is made."""
    known = dict(zip(old, held, strict=True))
    return tuple(
        known[name] if old.get(name) == declared else fresh
        for (name, declared), fresh in zip(new.items(), made, strict=True)
    )


def _succeed_table(new: State, old: State, name: str) -> None:
    table, before = new.tables[name], old.tables[name].entries
    for (pairs, priority), stored in list(table.entries.items()):
        known = before.get((pairs, priority))
        if known is not None:
            table.put(pairs, priority, _with_cell(stored, known))


def _with_cell(stored: Stored, known: Stored) -> Stored:
    """`stored` with the counter, meter and age of `known`, if it has such."""
    cell, old = stored[2], known[2]
    if cell is None or old is None:
        return stored
    if len(cell) == len(old):
        return (stored[0], stored[1], old)
    cell[0], cell[1] = old[0], old[1]
    return stored
