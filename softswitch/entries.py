"""Values that cross the border of the switch: table entries, groups, sessions, counters.

All integers are unsigned, in host order, and no wider than the program declares; signed fields
are given in two's complement. Names are the full ones of P4Info and of the JSON.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """The key equals `value`."""

    value: int


@dataclass(frozen=True, slots=True)
class LpmMatch:
    """The top `prefix_len` bits of the key equal those of `value`; 0 matches anything."""

    value: int
    prefix_len: int


@dataclass(frozen=True, slots=True)
class TernaryMatch:
    """``key & mask == value``; mask 0 matches anything. `value` has no bit outside `mask`."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class RangeMatch:
    """``low <= key <= high``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class OptionalMatch:
    """The key equals `value`, or anything if `value` is None.

    p4c's JSON shows optional keys as ternary ones, so a table accepts this wherever it takes a
    `TernaryMatch`; entries are read back as `TernaryMatch` with a mask of all ones or zero.
    """

    value: int | None


Match = ExactMatch | LpmMatch | TernaryMatch | RangeMatch | OptionalMatch


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action by full name with one integer per parameter, in declaration order."""

    name: str
    params: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One entry: a match per key of the table, in the order of its keys.

    `priority` is P4Runtime's: > 0 and larger wins in tables with a ternary, range or optional
    key, 0 elsewhere. Two entries are the same entry when matches and priority are equal.
    """

    table: str
    matches: tuple[Match, ...]
    action: ActionCall
    priority: int = 0
    is_const: bool = False


@dataclass(frozen=True, slots=True)
class CounterData:
    """Packets and bytes; bytes count the length of the packet as it came in."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """Two-rate three-colour meter (RFC 2698): units (packets or bytes) a second, and bursts."""

    cir: int
    cburst: int
    pir: int
    pburst: int


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a multicast packet: egress port and instance (``egress_rid``)."""

    port: int
    instance: int = 0


@dataclass(frozen=True, slots=True)
class CloneSession:
    """Where the copies of clone session `session` go.

    `replicas` are the copies; `max_length` > 0 truncates each copy to that many bytes.
    """

    session: int
    replicas: tuple[Replica, ...]
    max_length: int = 0


@dataclass(frozen=True, slots=True)
class Digest:
    """One message of ``digest()``: the name of its list, and its members, unsigned, in order."""

    name: str
    members: tuple[int, ...]
    widths: tuple[int, ...] = field(default=())
