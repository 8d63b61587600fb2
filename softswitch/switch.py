"""The Python API for scripts and tests: a switch whose tables are written with plain values."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from softswitch import ir
from softswitch.device import Device
from softswitch.entries import (
    ActionCall,
    CloneSession,
    ExactMatch,
    LpmMatch,
    Match,
    RangeMatch,
    Replica,
    TableEntry,
    TernaryMatch,
)
from softswitch.errors import InvalidArgument, InvalidPipeline, NotFound
from softswitch.ports.naming import MAX_PORT
from softswitch.queued import Departure, QueuedPacket

MatchValue = int | tuple[int, int]


class Switch:
    """A device with names made easy.

    Tables, actions, counters and registers go by their full names, or by a shorter alias (the
    last parts of the name) where it is unique. `device` gives the typed interface.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    @classmethod
    def load(
        cls,
        source: str | Path | bytes,
        device_id: int = 0,
        queues: int = 1,
        backend: str | None = None,
    ) -> "Switch":
        """A switch that runs p4c's bmv2 JSON: a path, or the JSON itself as text or bytes.

        `queues`: priority queues a port. `backend`: ``auto``, ``python`` or ``native``, see
        `Device`. InvalidPipeline or UnsupportedConstruct if it cannot run.
        """
        device = Device(device_id, queues=queues, backend=backend)
        device.load_pipeline(_json(source))
        return cls(device)

    @property
    def program(self) -> ir.Program:
        return self.device.program

    # --- tables ---------------------------------------------------------------------------------

    def insert(
        self,
        table: str,
        match: Mapping[str, MatchValue],
        action: str,
        params: Mapping[str, int] | None = None,
        priority: int = 0,
    ) -> None:
        """Add an entry.

        Match values: exact int; ternary and optional (value, mask), or int for all bits; lpm
        (value, prefix_len), or int for the whole; range (low, high). A key left out matches
        anything where its kind allows. A larger priority wins, and bits outside a mask or prefix
        are refused, as in P4Runtime.
        """
        self.device.insert_entry(self._entry(table, match, action, params, priority))

    def modify(
        self,
        table: str,
        match: Mapping[str, MatchValue],
        action: str,
        params: Mapping[str, int] | None = None,
        priority: int = 0,
    ) -> None:
        """Give an existing entry another action; NotFound if it is not there."""
        self.device.modify_entry(self._entry(table, match, action, params, priority))

    def delete(self, table: str, match: Mapping[str, MatchValue], priority: int = 0) -> None:
        """Remove an entry; NotFound if it is not there."""
        declared = self._table(table)
        self.device.delete_entry(declared.name, self._matches(declared, match), priority)

    def set_default(self, table: str, action: str, params: Mapping[str, int] | None = None) -> None:
        """Set the default action."""
        declared = self._table(table)
        self.device.set_default_action(declared.name, self._call(declared, action, params))

    def _entry(
        self,
        table: str,
        match: Mapping[str, MatchValue],
        action: str,
        params: Mapping[str, int] | None,
        priority: int,
    ) -> TableEntry:
        declared = self._table(table)
        call = self._call(declared, action, params)
        return TableEntry(declared.name, self._matches(declared, match), call, priority)

    def _table(self, name: str) -> ir.Table:
        tables = self.program.tables
        # What p4c makes of statements has no keys; it can be named, but nobody looks for it.
        keyed = [one for one in tables if tables[one].keys]
        return tables[_resolve("table", name, list(tables), keyed)]

    def _call(self, table: ir.Table, action: str, params: Mapping[str, int] | None) -> ActionCall:
        actions = {self.program.actions[a].name: self.program.actions[a] for a in table.actions}
        found = actions[_resolve(f"action of table '{table.name}'", action, list(actions))]
        given = dict(params or {})
        missing = [p for p in found.param_names if p not in given]
        unknown = [p for p in given if p not in found.param_names]
        if missing or unknown:
            raise InvalidArgument(
                f"action '{found.name}' takes ({', '.join(found.param_names)}),"
                f" not ({', '.join(given)})"
            )
        return ActionCall(found.name, tuple(given[p] for p in found.param_names))

    def _matches(self, table: ir.Table, match: Mapping[str, MatchValue]) -> tuple[Match, ...]:
        names = [k.name for k in table.keys]
        given = {_resolve(f"key of table '{table.name}'", k, names): v for k, v in match.items()}
        return tuple(_match(table, key, given.get(key.name)) for key in table.keys)

    # --- replication ----------------------------------------------------------------------------

    def multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set the (port, instance) copies of a group, new or not."""
        copies = tuple(Replica(port, instance) for port, instance in replicas)
        if group in self.device.multicast_groups():
            self.device.modify_multicast_group(group, copies)
        else:
            self.device.create_multicast_group(group, copies)

    def mirror(self, session: int, port: int) -> None:
        """Send the clones of a session to a port."""
        wanted = CloneSession(session, (Replica(port),))
        if session in self.device.clone_sessions():
            self.device.modify_clone_session(wanted)
        else:
            self.device.create_clone_session(wanted)

    # --- state ----------------------------------------------------------------------------------

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell of an indirect counter."""
        names = [c.name for c in self.program.counters.values() if c.table is None]
        data = self.device.counter(_resolve("indirect counter", name, names), index)
        return data.packets, data.bytes

    def direct_counter(
        self, table: str, match: Mapping[str, MatchValue] | None, priority: int = 0
    ) -> tuple[int, int]:
        """(packets, bytes) of an entry; `match` None means the default entry."""
        declared = self._table(table)
        matches = None if match is None else self._matches(declared, match)
        data = self.device.direct_counter(declared.name, matches, priority)
        return data.packets, data.bytes

    def register(self, name: str, index: int) -> int:
        """One cell of a register."""
        return self.device.register(_resolve("register", name, list(self.program.registers)), index)

    def process(self, port: int, data: bytes, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Run one packet: [(port, bytes), ...] in order of leaving.

        InvalidArgument unless the port is one of v1model's 9 bits.
        """
        _check_port(port)
        return self.device.process(port, data, now_us)

    def enqueue(self, port: int, data: bytes, now_us: int = 0) -> list[QueuedPacket]:
        """Run one packet up to its queues; see `Device.enqueue`. The port is as for `process`."""
        _check_port(port)
        return self.device.enqueue(port, data, now_us)

    def dequeue(
        self, packet: QueuedPacket, now_us: int = 0, enq_qdepth: int = 0, deq_qdepth: int = 0
    ) -> Departure:
        """Run a packet on that has left its queue; see `Device.dequeue`."""
        return self.device.dequeue(packet, now_us, enq_qdepth, deq_qdepth)


def _check_port(port: int) -> None:
    if not 0 <= port <= MAX_PORT:
        raise InvalidArgument(f"port {port} is outside 0..{MAX_PORT}")


def _json(source: str | Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source.encode()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise InvalidPipeline(f"cannot read the pipeline '{source}': {error.strerror}") from None


def _resolve(what: str, name: str, full: list[str], shown: list[str] | None = None) -> str:
    """The full name that is meant; an error lists those `shown`, by default all."""
    if name in full:
        return name
    found = [f for f in full if f.endswith("." + name)]
    if len(found) == 1:
        return found[0]
    if not found:
        listed = full if shown is None else shown
        close = get_close_matches(name, listed, n=1)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise NotFound(
            f"no {what} is named '{name}'; {hint}there are {', '.join(listed) or 'none'}"
        )
    raise InvalidArgument(f"'{name}' is ambiguous: {', '.join(found)}")


def _match(table: ir.Table, key: ir.Key, value: MatchValue | None) -> Match:
    full = (1 << key.width) - 1
    if value is None:
        match key.kind:
            case "lpm":
                return LpmMatch(0, 0)
            case "ternary":
                return TernaryMatch(0, 0)
            case "range":
                return RangeMatch(0, full)
        raise InvalidArgument(f"table '{table.name}': exact key '{key.name}' is missing")
    pair = isinstance(value, tuple)
    first, second = value if isinstance(value, tuple) else (value, 0)
    match key.kind:
        case "exact" if not pair:
            return ExactMatch(first)
        case "lpm":
            length = second if pair else key.width
            top = full ^ (full >> length) if 0 <= length <= key.width else full
            if 0 <= first <= full and first & ~top:
                raise InvalidArgument(
                    f"table '{table.name}': key '{key.name}' has bits outside its prefix of "
                    f"length {length}"
                )
            return LpmMatch(first, length)
        case "ternary":
            mask = second if pair else full
            if 0 <= first <= full and first & ~mask:
                raise InvalidArgument(
                    f"table '{table.name}': key '{key.name}' has bits outside its mask {mask:#x}"
                )
            return TernaryMatch(first, mask)
        case "range":
            return RangeMatch(first, second if pair else first)
    raise InvalidArgument(f"table '{table.name}': key '{key.name}' takes one value")
