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
class MemberRef:
    """The action of member `member` of the table's action profile."""

    member: int


@dataclass(frozen=True, slots=True)
class GroupRef:
    """The action of one member of group `group`, chosen by the selector's hash."""

    group: int


@dataclass(frozen=True, slots=True)
class WeightedAction:
    """One action of a one-shot set: it takes `weight` of the shares of the hash.

    While the port `watch_port` (a number in bytes; empty: none) does not live, it takes none: see
    `Device.set_live_ports`.
    """

    action: ActionCall
    weight: int = 1
    watch_port: bytes = b""


@dataclass(frozen=True, slots=True)
class OneShot:
    """A group of its own for one entry (P4Runtime, section 9.2.3 "One Shot Action Selector")."""

    actions: tuple[WeightedAction, ...]


EntryAction = ActionCall | MemberRef | GroupRef | OneShot
"""An `ActionCall` in plain tables, one of the others in tables with an action profile."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One entry: a match per key of the table, in the order of its keys.

    `priority` is P4Runtime's: > 0 and larger wins in tables with a ternary, range or optional
    key, 0 elsewhere. Two entries are the same entry when matches and priority are equal.
    `idle_timeout_ns` > 0 has the entry reported when no packet hit it for so long; only in tables
    whose program says ``support_timeout``.
    """

    table: str
    matches: tuple[Match, ...]
    action: EntryAction
    priority: int = 0
    is_const: bool = False
    idle_timeout_ns: int = 0


@dataclass(frozen=True, slots=True)
class ProfileMember:
    """Member `member` of action profile `profile`."""

    profile: str
    member: int
    action: ActionCall


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member in a group, with `weight` >= 1 shares of the hash; see `WeightedAction`."""

    member: int
    weight: int = 1
    watch_port: bytes = b""


@dataclass(frozen=True, slots=True)
class ProfileGroup:
    """Group `group` of action profile `profile`; the weights' sum is at most `max_size` if > 0."""

    profile: str
    group: int
    members: tuple[GroupMember, ...] = ()
    max_size: int = 0


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
class CrcConfig:
    """Parameters of a custom CRC of `width` bits; `polynomial` is without its top term."""

    width: int
    polynomial: int
    initial: int
    final_xor: int
    reflect_data: bool
    reflect_remainder: bool


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
