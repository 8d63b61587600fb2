"""One P4 device: a pipeline, its state, and everything a control plane may do to it.

Threads: any number of threads may call `process`-free methods one at a time (one writer), while
one other thread runs `process`. Every write replaces one value in one step under the interpreter
lock, so a packet sees an entry, a group or a session either before or after a write, never between.
"""

from collections.abc import Callable
from typing import Protocol

from softswitch.entries import (
    ActionCall,
    CloneSession,
    CounterData,
    Digest,
    Match,
    MeterConfig,
    Replica,
    TableEntry,
)
from softswitch.ir import Program


class Device(Protocol):
    """Interface of a device; all errors are subclasses of `softswitch.errors.SoftswitchError`."""

    device_id: int
    cpu_port: int | None
    on_digest: Callable[[Digest], None] | None

    def __init__(self, device_id: int = 0, cpu_port: int | None = None) -> None: ...

    @property
    def program(self) -> Program:
        """The running program (names, widths, kinds); FailedPrecondition before a load."""

    @property
    def has_pipeline(self) -> bool: ...

    def check_pipeline(self, json_bytes: bytes) -> Program:
        """VERIFY: compile without installing."""

    def load_pipeline(self, json_bytes: bytes) -> None:
        """Install; clears tables, counters, registers; keeps groups and sessions. Atomic."""

    # tables: AlreadyExists, NotFound, InvalidArgument, ResourceExhausted, PermissionDenied (const)
    def insert_entry(self, entry: TableEntry) -> None: ...
    def modify_entry(self, entry: TableEntry) -> None: ...
    def delete_entry(self, table: str, matches: tuple[Match, ...], priority: int = 0) -> None: ...
    def read_entries(self, table: str) -> tuple[TableEntry, ...]: ...
    def read_entry(
        self, table: str, matches: tuple[Match, ...], priority: int = 0
    ) -> TableEntry: ...

    def default_action(self, table: str) -> ActionCall | None:
        """The default in force (None: the table has none, a miss does nothing)."""

    def set_default_action(self, table: str, action: ActionCall) -> None: ...
    def reset_default_action(self, table: str) -> None: ...

    # direct counters; matches None addresses the default entry
    def direct_counter(
        self, table: str, matches: tuple[Match, ...] | None, priority: int = 0
    ) -> CounterData: ...
    def set_direct_counter(
        self, table: str, matches: tuple[Match, ...] | None, priority: int, value: CounterData
    ) -> None: ...

    # indirect counters, meters
    def counter(self, name: str, index: int) -> CounterData: ...
    def counters(self, name: str) -> tuple[CounterData, ...]: ...
    def set_counter(self, name: str, index: int, value: CounterData) -> None: ...
    def meter(self, name: str, index: int) -> MeterConfig | None: ...
    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None: ...
    def direct_meter(
        self, table: str, matches: tuple[Match, ...], priority: int = 0
    ) -> MeterConfig | None: ...
    def set_direct_meter(
        self, table: str, matches: tuple[Match, ...], priority: int, config: MeterConfig | None
    ) -> None: ...

    # packet replication: group ids > 0; a (port, instance) may appear once in a group
    def create_multicast_group(self, group: int, replicas: tuple[Replica, ...]) -> None: ...
    def modify_multicast_group(self, group: int, replicas: tuple[Replica, ...]) -> None: ...
    def delete_multicast_group(self, group: int) -> None: ...
    def multicast_groups(self) -> dict[int, tuple[Replica, ...]]: ...
    def create_clone_session(self, session: CloneSession) -> None: ...
    def modify_clone_session(self, session: CloneSession) -> None: ...
    def delete_clone_session(self, session: int) -> None: ...
    def clone_sessions(self) -> dict[int, CloneSession]: ...

    def process(self, port: int, data: bytes, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Run one packet; [(port, bytes), ...] in order of leaving; [] without a pipeline.

        A packet-out is ``process(cpu_port, header + payload)``; what comes out with port ==
        cpu_port is a packet-in, its controller header first.
        """
