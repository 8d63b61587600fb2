"""State of one pipeline instance: what generated code reads and writes."""

import logging
from collections import deque
from collections.abc import Callable, MutableMapping, MutableSequence

from softswitch import ir
from softswitch.entries import Digest
from softswitch.hashes import STATEFUL, stateful_hash
from softswitch.meters import MeterArray
from softswitch.profiles import Profile
from softswitch.tables import Cell, RuntimeTable, Stored, runtime_table

LOG = logging.getLogger("softswitch")
# an array of at most so many cells is a list from the start; a larger one grows as it is written,
# and so do those beyond so many cells of a program in all
_LIST_CELLS = 1 << 16
_ALL_LIST_CELLS = 1 << 22

Cells = MutableSequence[int] | MutableMapping[int, int]
Job = tuple[Callable[..., None], tuple[object, ...]]


class Sparse(dict[int, int]):
    """A large array of integers, 0 where nothing was written."""

    def __missing__(self, index: int) -> int:
        return 0


class State:
    """Tables, registers, counters and meters of one program; groups and sessions are shared.

    Generated code knows the attributes by name: see `softswitch.codegen.module`.
    """

    def __init__(
        self,
        program: ir.Program,
        groups: dict[int, tuple[tuple[int, int], ...]],
        sessions: dict[int, tuple[tuple[tuple[int, int], ...], int]],
        queues: int,
    ) -> None:
        self.program = program
        self.groups = groups
        self.sessions = sessions
        self.queues = queues
        self.tables: dict[str, RuntimeTable] = {
            name: self.make_table(number, table)
            for number, (name, table) in enumerate(program.tables.items())
        }
        self.lookups = tuple(t.lookup for t in self.tables.values())
        selectors = [p.selector for p in program.profiles.values() if p.selector is not None]
        self.hashes = {
            c.name: stateful_hash(c.algorithm)
            for c in (*program.calculations.values(), *selectors)
            if c.algorithm in STATEFUL
        }
        self.profiles = {name: Profile(p) for name, p in program.profiles.items()}
        # per table, where its actions stand; members of a profile know their action by name
        self.positions = tuple(
            {program.actions[a].name: i for i, a in enumerate(t.actions)} if t.profile else {}
            for t in program.tables.values()
        )
        self.now_us = 0
        self.time: Callable[[], int] | None = None
        self.has_ages = any(table.supports_timeout for table in program.tables.values())
        self._in_lists = 0
        self.defaults = self.make_defaults()
        self.registers = tuple(
            self.make_cells("register", i, r.size) for i, r in enumerate(program.registers.values())
        )
        self.packets, self.bytes = (
            tuple(self.make_cells(k, i, c.size) for i, c in enumerate(program.counters.values()))
            for k in ("packets", "bytes")
        )
        self.meters = tuple(MeterArray(m.size, m.unit == "bytes") for m in program.meters.values())
        self.value_sets = self.make_value_sets()
        self.later: deque[Job] = deque()
        # of a packet that is run in two steps: its passes so far, and how it waited (see
        # `softswitch.codegen.queueing`)
        self.passes = 0
        self.waited: tuple[int, int, int, int, int] | None = None
        self.without_queue = 0
        self.on_digest: Callable[[Digest], None] | None = None
        for table in program.tables.values():
            self._add_const_entries(table)

    # Where the state lives; another back end keeps it elsewhere.

    def make_table(self, number: int, table: ir.Table) -> RuntimeTable:
        """The entries of table `number`."""
        return runtime_table(table)

    def make_cells(self, kind: str, number: int, size: int) -> Cells:
        """The cells of register or counter `number`; `kind`: register, packets or bytes."""
        if size > _LIST_CELLS or self._in_lists + size > _ALL_LIST_CELLS:
            return Sparse()
        self._in_lists += size
        return [0] * size

    def make_defaults(self) -> list[Stored]:
        """The default entry of every table."""
        return [self.initial_default(t) for t in self.program.tables.values()]

    def make_value_sets(self) -> list[frozenset[int]]:
        """The members of every parser value set."""
        return [frozenset() for _ in self.program.value_sets]

    def new_cell(self, table: ir.Table) -> Cell | None:
        """Counter, meter and age of one entry, if its table has any."""
        if table.supports_timeout:
            return [0, 0, None, 0, 0, 0]
        return [0, 0, None] if table.has_counter or table.meter is not None else None

    def initial_default(self, table: ir.Table) -> Stored:
        """The default entry that the program declares; position -1 does nothing."""
        if table.default is None:
            return (-1, (), self.new_cell(table))
        position = table.actions.index(table.default.action)
        return (position, table.default.params, self.new_cell(table))

    def _add_const_entries(self, table: ir.Table) -> None:
        for entry in table.const_entries:
            pairs = tuple(
                (value, prefix_mask(extra, key.width)) if key.kind == "lpm" else (value, extra)
                for key, (value, extra) in zip(table.keys, entry.matches, strict=True)
            )
            stored = (table.actions.index(entry.action), entry.params, self.new_cell(table))
            known = self.tables[table.name]
            if (pairs, entry.priority) not in known.entries:
                known.put(pairs, entry.priority, stored)

    def clock(self) -> int:
        """The time, in us, as the device knows it: of its clock, or of its latest packet."""
        return self.now_us if self.time is None else self.time()

    def digest(self, list_id: int, members: tuple[int, ...]) -> None:
        """Called by generated code for a digest message."""
        if self.on_digest is not None:
            listed = self.program.learn_lists[list_id]
            self.on_digest(Digest(listed.name, members, listed.widths))

    def no_queue(self, priority: int) -> None:
        """A packet is dropped as it has a priority without a queue; the 1st, 10th, ... is logged.

        bmv2 logs each; at line rate the log would be all that the switch does.
        """
        self.without_queue += 1
        if 10 ** (len(str(self.without_queue)) - 1) == self.without_queue:
            LOG.error(
                "Priority out of range, dropping packet: it has priority %d, a port has queues "
                "0..%d (%d dropped so far); --priority-queues sets how many",
                priority,
                self.queues - 1,
                self.without_queue,
            )

    def failed(self, kind: str, where: str) -> None:
        """Called by generated code when an assert or assume does not hold."""
        LOG.error("%s failed in %s", kind, where)

    def log(self, template: str, values: tuple[int, ...]) -> None:
        """Called by generated code for ``log_msg``."""
        if LOG.isEnabledFor(logging.INFO):
            parts = template.split("{}")
            text = parts[0]
            for position, part in enumerate(parts[1:]):
                text += (str(int(values[position])) if position < len(values) else "{}") + part
            LOG.info("%s", text)


def prefix_mask(prefix_len: int, width: int) -> int:
    """The top `prefix_len` of `width` bits set."""
    return (1 << width) - (1 << (width - prefix_len))
