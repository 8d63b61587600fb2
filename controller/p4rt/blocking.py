"""The fleet for code without an event loop: it runs one in a thread, and waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from controller.p4rt.fleet import DEFAULT_DEADLINE_S, CounterValue, Fleet, connect
from controller.p4rt.schema import Artefacts, Schema
from controller.p4rt.session import SwitchAddress
from controller.program import CloneSession, SwitchProgram, TableEntry, Update

SETTLE_S = 5.0

_Result = TypeVar("_Result")


class BlockingFleet:
    """`Fleet`, method for method, each waiting for its result."""

    def __init__(self, fleet: Fleet, loop: asyncio.AbstractEventLoop) -> None:
        self._fleet = fleet
        self._loop = loop

    @property
    def names(self) -> tuple[str, ...]:
        """See `Fleet.names`."""
        return self._fleet.names

    @property
    def schema(self) -> Schema:
        """See `Fleet.schema`."""
        return self._fleet.schema

    def push(self) -> frozenset[str]:
        """See `Fleet.push`."""
        return self._wait(self._fleet.push())

    def write(self, name: str, updates: Sequence[Update]) -> None:
        """See `Fleet.write`."""
        self._wait(self._fleet.write(name, updates))

    def read(self, name: str) -> SwitchProgram:
        """See `Fleet.read`."""
        return self._wait(self._fleet.read(name))

    def reconcile(self, programs: Iterable[SwitchProgram]) -> dict[str, tuple[Update, ...]]:
        """See `Fleet.reconcile`."""
        return self._wait(self._fleet.reconcile(programs))

    def direct_counters(self, name: str, table: str) -> dict[TableEntry, CounterValue]:
        """See `Fleet.direct_counters`."""
        return self._wait(self._fleet.direct_counters(name, table))

    def all_direct_counters(
        self, table: str, names: Iterable[str] | None = None
    ) -> Mapping[str, dict[TableEntry, CounterValue]]:
        """Return the direct counters of one table of every switch, or of those named."""
        return self._wait(
            self._fleet.each(lambda name: self._fleet.direct_counters(name, table), names)
        )

    def counter(self, name: str, counter: str) -> tuple[CounterValue, ...]:
        """See `Fleet.counter`."""
        return self._wait(self._fleet.counter(name, counter))

    def all_counters(
        self, counter: str, names: Iterable[str] | None = None
    ) -> Mapping[str, tuple[CounterValue, ...]]:
        """Return all cells of one indirect counter of every switch, or of those named."""
        return self._wait(self._fleet.each(lambda name: self._fleet.counter(name, counter), names))

    def clone_sessions(self, name: str) -> tuple[CloneSession, ...]:
        """See `Fleet.clone_sessions`."""
        return self._wait(self._fleet.clone_sessions(name))

    def _wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        # Every RPC inside has its deadline, so this ends.
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _settle() -> None:
    """Let the calls that were cancelled on leaving end before their loop does."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=SETTLE_S)


@contextmanager
def connect_blocking(
    switches: Sequence[SwitchAddress],
    artefacts: Artefacts,
    *,
    election_id: int = 1,
    deadline: float = DEFAULT_DEADLINE_S,
) -> Iterator[BlockingFleet]:
    """`connect` for code without an event loop; same arguments, same errors."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="p4runtime-client", daemon=True)
    thread.start()
    context = connect(switches, artefacts, election_id=election_id, deadline=deadline)
    try:
        fleet = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result()
        try:
            yield BlockingFleet(fleet, loop)
        finally:
            leaving = context.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(leaving, loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(_settle(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
