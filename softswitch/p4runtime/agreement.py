"""Whether P4Info and the compiled JSON of one push describe the same program. Pure.

They come from one run of p4c and travel in one message, but nothing binds them: pairing the P4Info
of one build with the JSON of another would otherwise show as entries that match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from softswitch.ir import Program
from softswitch.ir.program import Action, Table
from softswitch.p4runtime.p4info import MatchKind, PipelineInfo, TableInfo
from softswitch.p4runtime.status import invalid

_JSON_KIND = {
    MatchKind.EXACT: "exact",
    MatchKind.LPM: "lpm",
    MatchKind.TERNARY: "ternary",
    MatchKind.RANGE: "range",
    MatchKind.OPTIONAL: "ternary",
}
"""How the JSON calls a match kind: it shows optional keys as ternary ones."""


def check(info: PipelineInfo, program: Program) -> None:
    """Raise RefusedError (INVALID_ARGUMENT), naming all that differs, if anything does."""
    problems = list(_problems(info, program))
    if problems:
        raise invalid(
            "P4Info and the JSON are not of one program, push both from one run of p4c: "
            + "; ".join(problems)
        )


def _problems(info: PipelineInfo, program: Program) -> Iterator[str]:
    for wanted in info.tables.values():
        table = program.tables.get(wanted.name)
        if table is None:
            yield f"the JSON has no table {wanted.name}"
            continue
        yield from _table_problems(wanted, table)
        yield from _action_problems(wanted, table, program)
    for wanted_counter in info.counters.values():
        counter = program.counters.get(wanted_counter.name)
        if counter is None or counter.table is not None:
            yield f"the JSON has no indirect counter {wanted_counter.name}"
        elif counter.size != wanted_counter.size:
            yield f"counter {counter.name} has {counter.size} cells, not {wanted_counter.size}"


def _table_problems(wanted: TableInfo, table: Table) -> Iterator[str]:
    there = [(key.name, key.width, key.kind) for key in table.keys]
    listed = [(field.name, field.width, _JSON_KIND[field.kind]) for field in wanted.fields]
    if [name for name, _, _ in there] != [name for name, _, _ in listed]:
        yield (
            f"table {wanted.name} has the keys {[name for name, _, _ in there]}, not "
            f"{[name for name, _, _ in listed]}"
        )
        return
    for (name, width, kind), (_, listed_width, listed_kind) in zip(there, listed, strict=True):
        if (width, kind) != (listed_width, listed_kind):
            yield (
                f"table {wanted.name}: key {name} is {kind} of {width} bits, not {listed_kind} "
                f"of {listed_width}"
            )
    if table.has_counter != wanted.direct_counter:
        yield f"table {wanted.name}: one of them has a direct counter, the other has none"


def _action_problems(wanted: TableInfo, table: Table, program: Program) -> Iterator[str]:
    there: dict[str, Action] = {
        program.actions[number].name: program.actions[number] for number in table.actions
    }
    for use in wanted.actions.values():
        action = there.get(use.action.name)
        if action is None:
            yield f"table {wanted.name} has no action {use.action.name} in the JSON"
        elif action.param_widths != tuple(param.width for param in use.action.params):
            yield (
                f"action {action.name} takes parameters of {list(action.param_widths)} bits, not "
                f"{[param.width for param in use.action.params]}"
            )
