"""Run-time tables, registers and counters in native memory, as the control plane sees them.

The control plane's view of entries stays in Python; every change of it is made in native memory
in the same step. Counters and ages of entries exist there only.
"""

import ctypes
import weakref
from collections.abc import Iterator, MutableSequence
from typing import SupportsIndex, overload

from softswitch import ir
from softswitch.meters import Meter
from softswitch.native.controls import key_limbs, param_limbs
from softswitch.native.library import Memory
from softswitch.tables import ExactTable, LpmTable, Pairs, RuntimeTable, Stored, TernaryTable

_Item = int | Meter | None
_AT = {0: 0, 1: 1, 3: 2}
"""Which elements of a cell are native, and where."""


class NativeCell(list[_Item]):
    """A cell whose packets, bytes and time of the last hit are native."""

    __slots__ = ("memory",)

    def __init__(self, size: int) -> None:
        super().__init__([0, 0, None, 0, 0, 0][:size])
        self.memory = (ctypes.c_uint64 * 3)()

    @overload
    def __getitem__(self, index: SupportsIndex) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Item]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> _Item | list[_Item]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = _AT.get(int(index))
        return super().__getitem__(index) if place is None else self.memory[place]

    def __setitem__(self, index: SupportsIndex | slice, value: object) -> None:
        if isinstance(index, slice):
            assert isinstance(value, list)
            for at, item in zip(range(*index.indices(len(self))), value, strict=True):
                self[at] = item
            return
        place = _AT.get(int(index))
        assert value is None or isinstance(value, int | Meter)
        if place is None:
            super().__setitem__(index, value)
        else:
            assert isinstance(value, int)
            self.memory[place] = value


class NativeCells(MutableSequence[int]):
    """`size` integers of `limbs` words each, in native memory."""

    def __init__(self, memory: Memory, address: object, size: int, limbs: int) -> None:
        self.owner = memory
        self._words = memory.words(address, size * limbs)
        self._size = size
        self._limbs = limbs

    @property
    def address(self) -> int:
        """Where they are, as long as this object lives."""
        return ctypes.addressof(self._words)

    def __len__(self) -> int:
        return self._size

    def _at(self, index: int) -> int:
        if not 0 <= index < self._size:
            raise IndexError(index)
        return index * self._limbs

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | MutableSequence[int]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        at = self._at(index)
        if self._limbs == 1:
            return self._words[at]
        return int.from_bytes(bytes(self._view(at)), "little")

    def _view(self, at: int) -> ctypes.Array[ctypes.c_ubyte]:
        start = ctypes.addressof(self._words) + 8 * at
        return (ctypes.c_ubyte * (8 * self._limbs)).from_address(start)

    def __setitem__(self, index: object, value: object) -> None:
        assert isinstance(index, int)
        assert isinstance(value, int)
        at = self._at(index)
        if self._limbs == 1:
            self._words[at] = value
        else:
            ctypes.memmove(
                self._view(at), value.to_bytes(8 * self._limbs, "little"), 8 * self._limbs
            )

    def __delitem__(self, index: object) -> None:
        raise TypeError("cells of a switch stay")

    def insert(self, index: int, value: int) -> None:
        raise TypeError("cells of a switch stay")

    def __iter__(self) -> Iterator[int]:
        return (self[i] for i in range(self._size))


class Writer:
    """What writes one table to native memory."""

    def __init__(self, memory: Memory, program: ir.Program, table: ir.Table, number: int) -> None:
        # not kept alive: tables are in cycles, and would hold the memory until they are collected
        self._memory = weakref.ref(memory)
        self.number = number
        self.limbs = key_limbs(table)
        self._params = [param_limbs(program.actions[a]) for a in table.actions]

    @property
    def memory(self) -> Memory:
        """The switch's memory, which its state keeps."""
        memory = self._memory()
        assert memory is not None
        return memory

    def key(self, values: list[int]) -> bytes:
        """Values, one a key, as their limbs."""
        pairs = zip(values, self.limbs, strict=True)
        return b"".join(value.to_bytes(8 * count, "little") for value, count in pairs)

    def action(self, stored: Stored) -> tuple[int, bytes, int, object]:
        """What a stored entry does: action, parameters, their limbs, the address of its cell."""
        position, params, cell = stored
        assert isinstance(position, int)
        given = b""
        if position >= 0 and params:
            pairs = zip(params, self._params[position], strict=True)
            given = b"".join(value.to_bytes(8 * count, "little") for value, count in pairs)
        address = ctypes.addressof(cell.memory) if isinstance(cell, NativeCell) else None
        return position, given, len(given) // 8, address

    def put(self, pairs: Pairs, masks: list[int], stored: Stored) -> None:
        """An entry of an exact or lpm table."""
        length = sum(mask.bit_count() for mask in masks)
        key, mask = self.key([value for value, _ in pairs]), self.key(masks)
        library = self.memory.library
        library.put(self.memory.address, self.number, key, mask, length, *self.action(stored))

    def remove(self, pairs: Pairs, masks: list[int]) -> None:
        key, mask = self.key([value for value, _ in pairs]), self.key(masks)
        self.memory.library.remove(self.memory.address, self.number, key, mask)


class NativeExactTable(ExactTable):
    """An exact table in native memory too."""

    def __init__(self, table: ir.Table, writer: Writer) -> None:
        super().__init__(table)
        self._native = writer
        self._masks = [0] * len(table.keys)

    def put(self, pairs: Pairs, priority: int, stored: Stored) -> None:
        self._native.put(pairs, self._masks, stored)
        super().put(pairs, priority, stored)

    def remove(self, pairs: Pairs, priority: int) -> None:
        self._native.remove(pairs, self._masks)
        super().remove(pairs, priority)


class NativeLpmTable(LpmTable):
    """An lpm table in native memory too."""

    def __init__(self, table: ir.Table, writer: Writer) -> None:
        super().__init__(table)
        self._native = writer

    def put(self, pairs: Pairs, priority: int, stored: Stored) -> None:
        self._native.put(pairs, [mask for _, mask in pairs], stored)
        super().put(pairs, priority, stored)

    def remove(self, pairs: Pairs, priority: int) -> None:
        self._native.remove(pairs, [mask for _, mask in pairs])
        super().remove(pairs, priority)


class NativeTernaryTable(TernaryTable):
    """A ternary or range table in native memory too, row by row."""

    def __init__(self, table: ir.Table, writer: Writer) -> None:
        super().__init__(table)
        self._native = writer

    def _place(self, pairs: Pairs, priority: int) -> int:
        same = (pairs, priority)
        return next(i for i, r in enumerate(self._rows) if (r.pairs, r.priority) == same)

    def put(self, pairs: Pairs, priority: int, stored: Stored) -> None:
        known = (pairs, priority) in self.entries
        super().put(pairs, priority, stored)
        ranges = [key.kind == "range" for key in self.table.keys]
        zipped = list(zip(pairs, ranges, strict=True))
        parts = (
            [0 if is_range else pair[0] for pair, is_range in zipped],
            [0 if is_range else pair[1] for pair, is_range in zipped],
            [pair[0] if is_range else 0 for pair, is_range in zipped],
            [pair[1] if is_range else 0 for pair, is_range in zipped],
        )
        memory, writer = self._native.memory, self._native
        memory.library.row_put(
            memory.address,
            writer.number,
            self._place(pairs, priority),
            int(known),
            b"".join(writer.key(part) for part in parts),
            *writer.action(stored),
        )

    def remove(self, pairs: Pairs, priority: int) -> None:
        memory = self._native.memory
        place = self._place(pairs, priority)
        memory.library.row_remove(memory.address, self._native.number, place)
        super().remove(pairs, priority)


def native_table(table: ir.Table, writer: Writer) -> RuntimeTable:
    """The lookup structure for a table's kind."""
    if table.kind == "exact":
        return NativeExactTable(table, writer)
    kind = NativeLpmTable if table.kind == "lpm" else NativeTernaryTable
    return kind(table, writer)
