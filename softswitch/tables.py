"""Run-time tables: what the control plane writes and generated code looks up.

A stored entry is ``(action position, parameters, cell)``: the position counts in the table's list
of actions. An entry that refers to an action profile is ``(choice, None, cell)``. The cell,
``[packets, bytes, meter, idle since, timeout, reported]``, exists in tables with a direct counter,
a direct meter or idle timeouts (only those have the last three). Generated code calls `lookup`,
which is a method of a plain dict in exact tables.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from softswitch import ir
from softswitch.meters import Meter
from softswitch.profiles import Choice

Cell = list[int | Meter | None]
IDLE_SINCE, TIMEOUT, REPORTED = 3, 4, 5
"""Elements of a cell: when a packet last hit, in us; the timeout, in ns; the last report, in us."""
Stored = tuple[int | Choice, tuple[int, ...] | None, Cell | None]
# per key: (value, mask), in range keys (low, high); the canonical form of a match
Pairs = tuple[tuple[int, int], ...]


def is_due(cell: Cell, now_us: int) -> bool:
    """True, once a timeout, if the entry with this cell is idle for its timeout at `now_us`."""
    since, timeout, reported = cell[IDLE_SINCE], cell[TIMEOUT], cell[REPORTED]
    assert isinstance(since, int)
    assert isinstance(timeout, int)
    assert isinstance(reported, int)
    if not timeout or (now_us - max(since, reported)) * 1000 < timeout:
        return False
    cell[REPORTED] = now_us
    return True


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a ternary or range table; `ranges` are (shift, mask, low, high)."""

    priority: int
    value: int
    mask: int
    ranges: tuple[tuple[int, int, int, int], ...]
    pairs: Pairs
    stored: Stored


class RuntimeTable:
    """Entries of one table by canonical match; subclasses keep the lookup structure."""

    lookup: Callable[..., Stored | None]

    def __init__(self, table: ir.Table) -> None:
        self.table = table
        self.entries: dict[tuple[Pairs, int], Stored] = {}

    def put(self, pairs: Pairs, priority: int, stored: Stored) -> None:
        """Insert or replace."""
        self.entries[pairs, priority] = stored

    def remove(self, pairs: Pairs, priority: int) -> None:
        del self.entries[pairs, priority]


class ExactTable(RuntimeTable):
    """One dict; a key is an integer, or a tuple of them."""

    def __init__(self, table: ir.Table) -> None:
        super().__init__(table)
        self._rows: dict[int | tuple[int, ...], Stored] = {}
        self.lookup = self._rows.get

    @staticmethod
    def _key(pairs: Pairs) -> int | tuple[int, ...]:
        return pairs[0][0] if len(pairs) == 1 else tuple(value for value, _ in pairs)

    def put(self, pairs: Pairs, priority: int, stored: Stored) -> None:
        super().put(pairs, priority, stored)
        self._rows[self._key(pairs)] = stored

    def remove(self, pairs: Pairs, priority: int) -> None:
        super().remove(pairs, priority)
        del self._rows[self._key(pairs)]


def join(table: ir.Table, pairs: Pairs) -> tuple[int, int]:
    """All keys as one value and one mask, the first key in the highest bits; ranges masked out."""
    value = mask = 0
    for key, (part, part_mask) in zip(table.keys, pairs, strict=True):
        value <<= key.width
        mask <<= key.width
        if key.kind != "range":
            value |= part
            mask |= part_mask
    return value, mask


class LpmTable(RuntimeTable):
    """One dict for each prefix length in use, the longest first."""

    def __init__(self, table: ir.Table) -> None:
        super().__init__(table)
        self._prefixes: list[tuple[int, dict[int, Stored]]] = []
        self.lookup = self._find

    def _find(self, key: int) -> Stored | None:
        for mask, rows in self._prefixes:
            stored = rows.get(key & mask)
            if stored is not None:
                return stored
        return None

    def put(self, pairs: Pairs, priority: int, stored: Stored) -> None:
        super().put(pairs, priority, stored)
        value, mask = join(self.table, pairs)
        for known, rows in self._prefixes:
            if known == mask:
                rows[value] = stored
                return
        grown = [*self._prefixes, (mask, {value: stored})]
        self._prefixes = sorted(grown, key=lambda p: -p[0].bit_count())

    def remove(self, pairs: Pairs, priority: int) -> None:
        super().remove(pairs, priority)
        value, mask = join(self.table, pairs)
        for known, rows in self._prefixes:
            if known == mask:
                del rows[value]
        self._prefixes = [p for p in self._prefixes if p[1]]


class TernaryTable(RuntimeTable):
    """Rows by falling priority; among equals the older entry wins."""

    def __init__(self, table: ir.Table) -> None:
        super().__init__(table)
        self._rows: list[Row] = []
        self.lookup = self._find

    def _find(self, key: int) -> Stored | None:
        for row in self._rows:
            if key & row.mask == row.value:
                for shift, mask, low, high in row.ranges:
                    if not low <= key >> shift & mask <= high:
                        break
                else:
                    return row.stored
        return None

    def _row(self, pairs: Pairs, priority: int, stored: Stored) -> Row:
        value, mask = join(self.table, pairs)
        ranges: list[tuple[int, int, int, int]] = []
        shift = 0
        for key, (low, high) in zip(reversed(self.table.keys), reversed(pairs), strict=True):
            full = (1 << key.width) - 1
            if key.kind == "range" and (low, high) != (0, full):
                ranges.append((shift, full, low, high))
            shift += key.width
        return Row(priority, value, mask, tuple(ranges), pairs, stored)

    def put(self, pairs: Pairs, priority: int, stored: Stored) -> None:
        new = self._row(pairs, priority, stored)
        replaced = (pairs, priority) in self.entries
        super().put(pairs, priority, stored)
        if replaced:
            same = (pairs, priority)
            self._rows = [new if (r.pairs, r.priority) == same else r for r in self._rows]
            return
        rows = list(self._rows)
        rows.insert(bisect_right(rows, -priority, key=lambda r: -r.priority), new)
        self._rows = rows

    def remove(self, pairs: Pairs, priority: int) -> None:
        super().remove(pairs, priority)
        self._rows = [r for r in self._rows if (r.pairs, r.priority) != (pairs, priority)]


def runtime_table(table: ir.Table) -> RuntimeTable:
    """The lookup structure for a table's kind."""
    if table.kind == "exact":
        return ExactTable(table)
    return LpmTable(table) if table.kind == "lpm" else TernaryTable(table)
