"""What a control plane may do to the tables of a device: checks, then one-step writes."""

from softswitch import ir
from softswitch.entries import (
    ActionCall,
    CounterData,
    EntryAction,
    ExactMatch,
    LpmMatch,
    Match,
    MeterConfig,
    OneShot,
    OptionalMatch,
    ProfileMember,
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
from softswitch.profiles import Choice, Profile
from softswitch.state import State, prefix_mask
from softswitch.tables import IDLE_SINCE, TIMEOUT, Cell, Pairs, Stored, is_due


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
        target, params = self._target(table, entry.action)
        self._check_timeout(table, entry.idle_timeout_ns)
        runtime = self.state.tables[table.name]
        if (pairs, entry.priority) in runtime.entries:
            raise AlreadyExists(f"table '{table.name}': the entry is there already; modify it")
        if len(runtime.entries) >= table.size:
            raise ResourceExhausted(f"table '{table.name}' is full: {table.size} entries")
        cell = self.state.new_cell(table)
        self._set_timeout(cell, entry.idle_timeout_ns)
        self._take(table, target)
        runtime.put(pairs, entry.priority, (target, params, cell))

    def modify(self, entry: TableEntry) -> None:
        """Give an entry another action; its counter goes on. NotFound if it is not there."""
        table = self._table(entry.table, writable=True)
        pairs, old = self._find(table, entry.matches, entry.priority)
        target, params = self._target(table, entry.action)
        self._check_timeout(table, entry.idle_timeout_ns)
        if (
            old[2] is not None
            and table.supports_timeout
            and old[2][TIMEOUT] != entry.idle_timeout_ns
        ):
            self._set_timeout(old[2], entry.idle_timeout_ns)
        self._take(table, target)
        self.state.tables[table.name].put(pairs, entry.priority, (target, params, old[2]))
        self._release(table, old[0])

    def delete(self, name: str, matches: tuple[Match, ...], priority: int) -> None:
        """Remove an entry; NotFound if it is not there."""
        table = self._table(name, writable=True)
        pairs, old = self._find(table, matches, priority)
        self.state.tables[name].remove(pairs, priority)
        self._release(table, old[0])

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
        timeout = stored[2][TIMEOUT] if table.supports_timeout and stored[2] is not None else 0
        assert isinstance(timeout, int)
        return TableEntry(table.name, matches, action, priority, table.is_const, timeout)

    def _named(self, table: ir.Table, stored: Stored) -> EntryAction:
        if isinstance(stored[0], Choice):
            return stored[0].action
        return self._plain_named(table, stored[0], stored[1] or ())

    def _plain_named(self, table: ir.Table, position: int, params: tuple[int, ...]) -> ActionCall:
        return ActionCall(self.program.actions[table.actions[position]].name, params)

    # --- action profiles ------------------------------------------------------------------------

    def _target(
        self, table: ir.Table, action: EntryAction
    ) -> tuple[int | Choice, tuple[int, ...] | None]:
        """What a stored entry holds for `action`."""
        if table.profile is not None:
            if isinstance(action, OneShot):
                for part in action.actions:
                    self._call(table, part.action)
            return self.state.profiles[table.profile].choice(action), None
        if not isinstance(action, ActionCall):
            raise InvalidArgument(f"table '{table.name}' has no action profile: name an action")
        return self._call(table, action)

    def _take(self, table: ir.Table, target: int | Choice) -> None:
        if isinstance(target, Choice) and table.profile is not None:
            self.state.profiles[table.profile].take(target)

    def _release(self, table: ir.Table, target: int | Choice) -> None:
        if isinstance(target, Choice) and table.profile is not None:
            self.state.profiles[table.profile].release(target)

    def profile(self, name: str) -> Profile:
        """The contents of an action profile; NotFound."""
        profile = self.state.profiles.get(name)
        if profile is None:
            raise NotFound(f"the program has no action profile '{name}'")
        return profile

    def check_member(self, member: ProfileMember) -> None:
        """InvalidArgument unless a table of the profile has the member's action."""
        self.profile(member.profile)
        users = [t for t in self.program.tables.values() if t.profile == member.profile]
        for table in users:
            if any(self.program.actions[a].name == member.action.name for a in table.actions):
                self._call(table, member.action)
                return
        raise InvalidArgument(
            f"action profile '{member.profile}' has no action '{member.action.name}'"
        )

    # --- idle timeouts --------------------------------------------------------------------------

    def _check_timeout(self, table: ir.Table, timeout_ns: int) -> None:
        if timeout_ns < 0:
            raise InvalidArgument(f"table '{table.name}': idle timeout {timeout_ns} is negative")
        if timeout_ns and not table.supports_timeout:
            raise InvalidArgument(f"table '{table.name}' does not support idle timeouts")

    def _set_timeout(self, cell: Cell | None, timeout_ns: int) -> None:
        if cell is not None and len(cell) > TIMEOUT:
            cell[IDLE_SINCE] = self.state.clock()
            cell[TIMEOUT] = timeout_ns

    def idle_us(self, name: str, matches: tuple[Match, ...], priority: int) -> int:
        """Microseconds since a packet last hit an entry, or since it was inserted."""
        table = self._table(name)
        if not table.supports_timeout:
            raise InvalidArgument(f"table '{name}' does not support idle timeouts")
        _, stored = self._find(table, matches, priority)
        assert stored[2] is not None
        since = stored[2][IDLE_SINCE]
        assert isinstance(since, int)
        return max(self.state.clock() - since, 0)

    def expired(self, now_us: int) -> tuple[TableEntry, ...]:
        """Entries that are idle for their timeout, each once a timeout."""
        found: list[TableEntry] = []
        for table in self.program.tables.values():
            if not table.supports_timeout:
                continue
            for (pairs, priority), stored in list(self.state.tables[table.name].entries.items()):
                cell = stored[2]
                if cell is not None and is_due(cell, now_us):
                    found.append(self._entry(table, pairs, priority, stored))
        return tuple(found)

    # --- default entry --------------------------------------------------------------------------

    def default(self, name: str) -> ActionCall | None:
        """The default action in force."""
        table = self._table(name)
        position, params, _ = self.state.defaults[self._numbers[name]]
        assert isinstance(position, int)
        return None if position < 0 else self._plain_named(table, position, params or ())

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
        position, params, _ = self.state.initial_default(table)
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
