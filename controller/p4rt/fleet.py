"""All switches of a network over P4Runtime, side by side.

async with connect(switches, artefacts) as fleet:
    await fleet.push()
    await fleet.reconcile(programs)
    counts = await fleet.direct_counters("s1", "upstream")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import grpc
from finsy.proto import p4r

from controller.p4rt.diff import diff
from controller.p4rt.errors import SchemaError, SwitchError
from controller.p4rt.schema import Artefacts, Schema
from controller.p4rt.session import CHANNEL_OPTIONS, Session, SwitchAddress
from controller.program import (
    CloneSession,
    MulticastGroup,
    SwitchProgram,
    TableEntry,
    Update,
)

DEFAULT_DEADLINE_S = 30.0
"""Of one RPC: a push may wait for a C compiler on a busy machine."""

AT_ONCE = 16
"""Switches worked on at a time: a deadline counts from an RPC's start, and switches on one machine
share its cores, so that starting all RPCs at once would make the last ones late."""

WRITES_AT_ONCE = 128
"""The same for writing entries, which is little work beside the way there and back."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CounterValue:
    """What a counter cell holds. Bytes count the packets' length as they came in."""

    packets: int
    bytes: int


class Fleet:
    """Sessions with the switches of a network; made by `connect`.

    Methods that take a switch's name raise KeyError for one that is not of the fleet, and what
    `Session` raises otherwise. Where many switches are involved the first error ends the others.
    """

    def __init__(self, sessions: Mapping[str, Session], schema: Schema) -> None:
        self._sessions = sessions
        self._schema = schema

    @property
    def names(self) -> tuple[str, ...]:
        """The switches' names, in the order they were given."""
        return tuple(self._sessions)

    @property
    def schema(self) -> Schema:
        """The program's schema."""
        return self._schema

    async def open(self, names: Iterable[str] | None = None, *, standby: bool = False) -> None:
        """Become the primary of switches, of all by default; `connect` calls it.

        Those whose session is open already are bid for anew. With `standby` see `Session.open`.
        """
        chosen = self._sessions if names is None else names
        await self._each(chosen, lambda session: session.open(standby=standby))

    async def promote(self, name: str, election_id: int) -> None:
        """Become the primary of a switch by another election id; see `Session.promote`."""
        await self._sessions[name].promote(election_id)

    @property
    def troubles(self) -> dict[str, SwitchError]:
        """The switches that cannot be written to now, and why."""
        found = {name: session.trouble for name, session in self._sessions.items()}
        return {name: trouble for name, trouble in found.items() if trouble is not None}

    async def wait_for_trouble(self, name: str) -> SwitchError:
        """Wait until a switch is lost, or has another primary."""
        return await self._sessions[name].wait_for_trouble()

    async def push(self, names: Iterable[str] | None = None) -> frozenset[str]:
        """Make every switch run the program; return the names of those that did not before.

        The others keep what they hold: `reconcile` finds the difference.
        """
        chosen = self._sessions if names is None else names
        pushed = await self._each(chosen, lambda session: session.push())
        return frozenset(name for name, fresh in pushed.items() if fresh)

    async def write(self, name: str, updates: Sequence[Update]) -> None:
        """Carry out updates on one switch, in their order; see `Session.write`."""
        await self._sessions[name].write(updates)

    async def change(self, updates: Mapping[str, Sequence[Update]]) -> dict[str, SwitchError]:
        """Write to many switches side by side; return the error of each that fails.

        One that fails does not keep the others from being written, so that afterwards it is known
        what every switch has been told.
        """

        async def one(session: Session) -> SwitchError | None:
            try:
                await session.write(updates[session.name])
            except SwitchError as error:
                return error
            return None

        answers = await self._each(updates, one, WRITES_AT_ONCE)
        return {name: error for name, error in answers.items() if error is not None}

    async def read(self, name: str) -> SwitchProgram:
        """Return all table entries and multicast groups of one switch, names as aliases.

        Entries that are constant in the program are left out: nobody can change them.
        """
        return await self._read(self._sessions[name])

    async def reconcile(self, programs: Iterable[SwitchProgram]) -> dict[str, tuple[Update, ...]]:
        """Make every switch hold exactly its program; return what was written, by switch."""
        wanted = {program.name: self.canonical(program) for program in programs}
        strangers = wanted.keys() - self._sessions.keys()
        if strangers:
            raise KeyError(f"programs for switches that are not connected: {sorted(strangers)}")

        async def one(session: Session) -> tuple[Update, ...]:
            updates = diff(wanted[session.name], await self._read(session))
            await session.write(updates)
            return updates

        return await self._each(wanted, one)

    async def direct_counters(self, name: str, table: str) -> dict[TableEntry, CounterValue]:
        """Return the direct counter of every entry of a table.

        Raises SchemaError when the table has none.
        """
        info = self._schema.table(table)
        if info.direct_counter is None:
            raise SchemaError(name, f"table {table} has no direct counter")
        request = p4r.Entity()
        request.table_entry.table_id = info.id
        request.table_entry.counter_data.SetInParent()
        messages = await self._sessions[name].read([request], f"reading the counters of {table}")
        counts = {}
        for message in messages:
            data = message.table_entry.counter_data
            entry = self._schema.value(message)
            if isinstance(entry, TableEntry):
                counts[entry] = CounterValue(data.packet_count, data.byte_count)
        return counts

    async def counter(self, name: str, counter: str) -> tuple[CounterValue, ...]:
        """Return all cells of an indirect counter, in the order of their indices."""
        request = self._schema.counter_request(counter)
        messages = await self._sessions[name].read([request], f"reading counter {counter}")
        cells = sorted(
            (message.counter_entry.index.index, message.counter_entry.data) for message in messages
        )
        return tuple(CounterValue(data.packet_count, data.byte_count) for _, data in cells)

    async def cells(
        self, name: str, counter: str, indices: Iterable[int]
    ) -> dict[int, CounterValue]:
        """Return some cells of an indirect counter, by index."""
        requests = [self._schema.counter_request(counter, index) for index in indices]
        messages = await self._sessions[name].read(requests, f"reading counter {counter}")
        entries = (message.counter_entry for message in messages)
        return {
            entry.index.index: CounterValue(entry.data.packet_count, entry.data.byte_count)
            for entry in entries
        }

    async def clone_sessions(self, name: str) -> tuple[CloneSession, ...]:
        """Return the clone sessions of one switch."""
        request = p4r.Entity()
        request.packet_replication_engine_entry.clone_session_entry.SetInParent()
        values = await self._sessions[name].read_values([request], "reading clone sessions")
        return tuple(value for value in values if isinstance(value, CloneSession))

    async def each(
        self, act: Callable[[str], Awaitable[_Result]], names: Iterable[str] | None = None
    ) -> dict[str, _Result]:
        """Await `act(name)` for many switches side by side, AT_ONCE at a time."""
        return await self._each(
            self._sessions if names is None else names, lambda session: act(session.name)
        )

    async def _each(
        self,
        names: Iterable[str],
        act: Callable[[Session], Awaitable[_Result]],
        at_once: int = AT_ONCE,
    ) -> dict[str, _Result]:
        turn = asyncio.Semaphore(at_once)

        async def one(session: Session) -> _Result:
            async with turn:
                return await act(session)

        return await _all({name: one(self._sessions[name]) for name in names})

    async def _read(self, session: Session) -> SwitchProgram:
        entries, groups = p4r.Entity(), p4r.Entity()
        entries.table_entry.SetInParent()
        groups.packet_replication_engine_entry.multicast_group_entry.SetInParent()
        messages = await session.read([entries, groups], "reading entries and groups")
        values = [
            self._schema.value(message)
            for message in messages
            if not self._schema.is_const(message)
        ]
        return SwitchProgram(
            session.name,
            tuple(value for value in values if isinstance(value, TableEntry)),
            tuple(value for value in values if isinstance(value, MulticastGroup)),
        )

    def canonical(self, program: SwitchProgram) -> SwitchProgram:
        """The program as it would be read back; raises SchemaError."""
        try:
            entries = tuple(self._schema.canonical(entry) for entry in program.entries)
        except SchemaError as error:
            raise SchemaError(program.name, str(error)) from error
        return SwitchProgram(program.name, entries, program.groups)


async def _all(work: Mapping[str, Awaitable[_Result]]) -> dict[str, _Result]:
    """Await all of `work`; the first error cancels the rest and is raised, alone."""
    tasks = {name: asyncio.ensure_future(awaitable) for name, awaitable in work.items()}
    try:
        results = await asyncio.gather(*tasks.values())
    except BaseException:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        raise
    return dict(zip(tasks, results, strict=True))


@asynccontextmanager
async def fleet_of(
    switches: Sequence[SwitchAddress],
    artefacts: Artefacts,
    *,
    election_id: int = 1,
    deadline: float = DEFAULT_DEADLINE_S,
) -> AsyncIterator[Fleet]:
    """A fleet whose sessions are not open yet; they are closed when the context is left.

    Switches at one address share a connection. Raises ValueError for names that repeat and an
    election id outside 1..2^128-1.
    """
    if len({where.name for where in switches}) != len(switches):
        raise ValueError("the switches' names must differ")
    if not 0 < election_id < 1 << 128:
        raise ValueError(f"election id {election_id}: it must be in 1..2^128-1")
    schema = Schema(artefacts)
    channels = {
        address: grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)
        for address in dict.fromkeys(where.address for where in switches)
    }
    sessions = {
        where.name: Session(where, channels[where.address], schema, election_id, deadline)
        for where in switches
    }
    try:
        yield Fleet(sessions, schema)
    finally:
        await asyncio.gather(*(session.close() for session in sessions.values()))
        for channel in channels.values():
            await channel.close()


@asynccontextmanager
async def connect(
    switches: Sequence[SwitchAddress],
    artefacts: Artefacts,
    *,
    election_id: int = 1,
    deadline: float = DEFAULT_DEADLINE_S,
) -> AsyncIterator[Fleet]:
    """Become the primary of all `switches`, until the context is left.

    Raises what `fleet_of` raises, and what `Session.open` raises, for the first switch that fails.
    """
    async with fleet_of(switches, artefacts, election_id=election_id, deadline=deadline) as fleet:
        await fleet.open()
        yield fleet
