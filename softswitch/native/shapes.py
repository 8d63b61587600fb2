"""What the runtime must know of a program's tables, registers, counters and value sets."""

from softswitch import ir
from softswitch.native.controls import KINDS, key_limbs, range_parts
from softswitch.native.errors import NotNativeError

_MOST_STATE = 1 << 30
"""Bytes of registers and counters of one switch; a program with more is left to Python."""


def check_size(program: ir.Program) -> None:
    """NotNativeError for a program with more state than `_MOST_STATE`."""
    state = sum(r.size * 8 * max(1, -(-r.width // 64)) for r in program.registers.values())
    state += sum(16 * c.size for c in program.counters.values())
    if state > _MOST_STATE:
        raise NotNativeError(f"registers and counters of {state >> 20} MiB")


def shapes(program: ir.Program) -> str:
    """C definitions for tables.c and tail.c."""
    lines: list[str] = []
    found: list[str] = []
    for i, table in enumerate(program.tables.values()):
        parts = range_parts(table)
        if parts:
            texts = ", ".join(f"{{{at}, {count}}}" for at, count in parts)
            lines.append(f"static const Part parts{i}[] = {{{texts}}};")
        pointer = f"parts{i}" if parts else "NULL"
        count = sum(key_limbs(table))
        found.append(f"{{{KINDS[table.kind]}, {count}, {len(parts)}, {pointer}}}")
    registers = [f"{{{r.size}, {max(1, -(-r.width // 64))}}}" for r in program.registers.values()]
    counters = [str(c.size) for c in program.counters.values()]
    lines += [
        f"enum {{ TABLES = {len(found)}, REGISTERS = {len(registers)}, "
        f"COUNTERS = {len(counters)}, VALUE_SETS = {len(program.value_sets)} }};",
        "static const struct { u32 kind, limbs, range_count; const Part *ranges; } TABLE[] = "
        f"{{{', '.join(found) or '{0, 0, 0, 0}'}}};",
        "static const struct { u64 size; u32 limbs; } REGISTER[] = "
        f"{{{', '.join(registers) or '{0, 0}'}}};",
        f"static const u64 COUNTER[] = {{{', '.join(counters) or '0'}}};",
    ]
    return "\n".join(lines)
