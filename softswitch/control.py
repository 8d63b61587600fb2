"""What a control plane may do to the tables of a device: checks, then one-step writes."""

from softswitch import ir
from softswitch.entries import (
    ActionCall,
    CounterData,
    ExactMatch,
    LpmMatch,
    Match,
    MeterConfig,
    OptionalMatch,
    RangeMatch,
    TableEntry,
    TernaryMatch,
)
from softswitch.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unimplemented,
)
from softswitch.meters import Meter
from softswitch.state import State, initial_default, new_cell, prefix_mask
from softswitch.tables import Cell, Pairs, Stored


class TableControl:
    """Table operations on one pipeline instance; names are the full ones."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.program = state.program
        self._numbers = {name: i for i, name in enumerate(state.program.tables)}

    # --- entries --------------------------------------------------------------------------------

    def insert(self, entry: TableEntry) -> None:
        """Add an entry: AlreadyExists, ResourceExhausted, InvalidArgument, PermissionDenied."""
        table = self._table(entry.table, writable=True)
        pairs = self.pairs(table, entry.matches, entry.priority)
        position, params = self._call(table, entry.action)
        runtime = self.state.tables[table.name]
        if (pairs, entry.priority) in runtime.entries:
            raise AlreadyExists(f"table '{table.name}': the entry is there already; modify it")
        if len(runtime.entries) >= table.size:
            raise ResourceExhausted(f"table '{table.name}' is full: {table.size} entries")
        runtime.put(pairs, entry.priority, (position, params, new_cell(table)))

    def modify(self, entry: TableEntry) -> None:
        """Give an entry another action; its counter goes on. NotFound if it is not there."""
        table = self._table(entry.table, writable=True)
        pairs, old = self._find(table, entry.matches, entry.priority)
        position, params = self._call(table, entry.action)
        self.state.tables[table.name].put(pairs, entry.priority, (position, params, old[2]))

    def delete(self, name: str, matches: tuple[Match, ...], priority: int) -> None:
        """Remove an entry; NotFound if it is not there."""
        table = self._table(name, writable=True)
        pairs, _ = self._find(table, matches, priority)
        self.state.tables[name].remove(pairs, priority)

    def entries(self, name: str) -> tuple[TableEntry, ...]:
        """All entries of a table, oldest first."""
        table = self._table(name)
        stored = list(self.state.tables[name].entries.items())
        return tuple(self._entry(table, p, n, s) for (p, n), s in stored)

    def entry(self, name: str, matches: tuple[Match, ...], priority: int) -> TableEntry:
        """One entry; NotFound if it is not there."""
        table = self._table(name)
        pairs, stored = self._find(table, matches, priority)
        return self._entry(table, pairs, priority, stored)

    def _entry(self, table: ir.Table, pairs: Pairs, priority: int, stored: Stored) -> TableEntry:
        matches = tuple(_match(k, p) for k, p in zip(table.keys, pairs, strict=True))
        action = self._named(table, stored)
        return TableEntry(table.name, matches, action, priority, table.is_const)

    def _named(self, table: ir.Table, stored: Stored) -> ActionCall:
        action = self.program.actions[table.actions[stored[0]]]
        return ActionCall(action.name, stored[1])

    # --- default entry --------------------------------------------------------------------------

    def default(self, name: str) -> ActionCall | None:
        """The default action in force."""
        table = self._table(name)
        stored = self.state.defaults[self._numbers[name]]
        return None if stored[0] < 0 else self._named(table, stored)

    def set_default(self, name: str, call: ActionCall) -> None:
        """Replace the default action; PermissionDenied if the program declares it const."""
        table = self._table(name)
        number = self._numbers[name]
        position, params = self._call(table, call)
        declared = table.default
        if declared is not None and (declared.const_entry or declared.const_action):
            same_action = table.actions[position] == declared.action
            if not same_action or (declared.const_entry and params != declared.params):
                raise PermissionDenied(f"table '{name}': its default action is const")
        old = self.state.defaults[number]
        self.state.defaults[number] = (position, params, old[2])

    def reset_default(self, name: str) -> None:
        """Back to the default action that the program declares."""
        table = self._table(name)
        number = self._numbers[name]
        position, params, _ = initial_default(table)
        self.state.defaults[number] = (position, params, self.state.defaults[number][2])

    # --- direct resources -----------------------------------------------------------------------

    def cell(self, name: str, matches: tuple[Match, ...] | None, priority: int) -> Cell:
        """Counter and meter of an entry; `matches` None addresses the default entry."""
        table = self._table(name)
        if matches is None:
            stored = self.state.defaults[self._numbers[name]]
        else:
            _, stored = self._find(table, matches, priority)
        if stored[2] is None:
            raise InvalidArgument(f"table '{name}' has no direct counter or meter")
        return stored[2]

    def counter(self, name: str, matches: tuple[Match, ...] | None, priority: int) -> CounterData:
        """Direct counter of an entry."""
        cell = self.cell(name, matches, priority)
        if not self._table(name).has_counter:
            raise InvalidArgument(f"table '{name}' has no direct counter")
        packets, octets = cell[0], cell[1]
        assert isinstance(packets, int)
        assert isinstance(octets, int)
        return CounterData(packets, octets)

    def set_counter(
        self, name: str, matches: tuple[Match, ...] | None, priority: int, value: CounterData
    ) -> None:
        """Set the direct counter of an entry."""
        self.counter(name, matches, priority)
        self.cell(name, matches, priority)[:2] = [value.packets, value.bytes]

    def meter(self, name: str, matches: tuple[Match, ...], priority: int) -> MeterConfig | None:
        """Configuration of the direct meter of an entry."""
        self._direct_meter(name)
        meter = self.cell(name, matches, priority)[2]
        return meter.config if isinstance(meter, Meter) else None

    def set_meter(
        self, name: str, matches: tuple[Match, ...], priority: int, config: MeterConfig | None
    ) -> None:
        """Configure the direct meter of an entry; None: every packet is green."""
        declared = self._direct_meter(name)
        cell = self.cell(name, matches, priority)
        cell[2] = None if config is None else Meter(declared.unit == "bytes", config)

    def _direct_meter(self, name: str) -> ir.Meter:
        meter = self._table(name).meter
        if meter is None:
            raise InvalidArgument(f"table '{name}' has no direct meter")
        return self.program.meters[meter]

    # --- checks ---------------------------------------------------------------------------------

    def _table(self, name: str, writable: bool = False) -> ir.Table:
        table = self.program.tables.get(name)
        if table is None:
            raise NotFound(f"the program has no table '{name}'")
        if writable and table.is_const:
            raise PermissionDenied(f"table '{name}' has const entries")
        if writable and not table.keys:
            raise InvalidArgument(f"table '{name}' has no key: only its default action can be set")
        return table

    def _find(
        self, table: ir.Table, matches: tuple[Match, ...], priority: int
    ) -> tuple[Pairs, Stored]:
        pairs = self.pairs(table, matches, priority)
        stored = self.state.tables[table.name].entries.get((pairs, priority))
        if stored is None:
            raise NotFound(f"table '{table.name}' has no such entry")
        return pairs, stored

    def _call(self, table: ir.Table, call: ActionCall) -> tuple[int, tuple[int, ...]]:
        for position, number in enumerate(table.actions):
            action = self.program.actions[number]
            if action.name != call.name:
                continue
            if len(call.params) != len(action.param_widths):
                wanted = len(action.param_widths)
                raise InvalidArgument(f"action '{call.name}' takes {wanted} parameters")
            for name, width, value in zip(
                action.param_names, action.param_widths, call.params, strict=True
            ):
                if not 0 <= value < 1 << width:
                    raise InvalidArgument(
                        f"action '{call.name}': {name} = {value} does not fit in {width} bits"
                    )
            return position, tuple(call.params)
        raise InvalidArgument(f"table '{table.name}' has no action '{call.name}'")

    def pairs(self, table: ir.Table, matches: tuple[Match, ...], priority: int) -> Pairs:
        """The canonical match of an entry; InvalidArgument names the key that does not fit."""
        if len(matches) != len(table.keys):
            raise InvalidArgument(f"table '{table.name}' has {len(table.keys)} keys")
        if table.kind in ("ternary", "range"):
            if priority <= 0:
                raise InvalidArgument(f"table '{table.name}' needs a priority > 0")
        elif priority != 0:
            raise InvalidArgument(f"table '{table.name}' takes no priority")
        return tuple(_pair(table, k, m) for k, m in zip(table.keys, matches, strict=True))


def _pair(table: ir.Table, key: ir.Key, match: Match) -> tuple[int, int]:
    full = (1 << key.width) - 1
    what = f"table '{table.name}', key '{key.name}'"

    def fits(value: int) -> int:
        if not 0 <= value <= full:
            raise InvalidArgument(f"{what}: {value} does not fit in {key.width} bits")
        return value

    match (key.kind, match):
        case ("exact", ExactMatch(value=value)):
            return fits(value), full
        case ("lpm", LpmMatch(value=value, prefix_len=length)):
            if not 0 <= length <= key.width:
                raise InvalidArgument(f"{what}: prefix length {length} is not in 0..{key.width}")
            mask = prefix_mask(length, key.width)
        case ("ternary", TernaryMatch(value=value, mask=mask)):
            fits(mask)
        case ("ternary", OptionalMatch(value=optional)):
            value, mask = (0, 0) if optional is None else (optional, full)
        case ("range", RangeMatch(low=low, high=high)):
            if fits(low) > fits(high):
                raise InvalidArgument(f"{what}: range {low}..{high} is empty")
            return low, high
        case _:
            raise InvalidArgument(f"{what} is {key.kind}, not {type(match).__name__}")
    if fits(value) & ~mask:
        raise InvalidArgument(f"{what}: value has bits outside its mask")
    return value, mask


def _match(key: ir.Key, pair: tuple[int, int]) -> Match:
    match key.kind:
        case "exact":
            return ExactMatch(pair[0])
        case "lpm":
            return LpmMatch(pair[0], pair[1].bit_count())
        case "ternary":
            return TernaryMatch(*pair)
        case "range":
            return RangeMatch(*pair)
    raise Unimplemented(f"key kind '{key.kind}'")
