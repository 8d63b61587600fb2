"""All switches of a testbed, kept at what they should hold.

The switchboard knows one thing: the program that every switch should hold now. It changes that, as
a whole or not at all, and it brings back every switch that was lost: opens its session again,
pushes the P4 program if the switch has started anew, and writes what differs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.cuts import PortCounts
from controller.measurement import LinkCount
from controller.p4rt import (
    Fleet,
    NotPrimaryError,
    SwitchError,
    SwitchUnreachableError,
    diff,
)
from controller.program import Op, SwitchProgram, Update
from controller.service.errors import ChangeRefusedError
from controller.service.ledger import Counts, Part
from p4src.constants import Outcome

_LOG = logging.getLogger(__name__)
LEAD_S = 10.0
"""How long a switch may take to make this controller its primary; one that hangs is left aside."""
PROBE_S = 3.0
"""How long a switch that is probed may take to answer, also on a busy machine."""
RETRY_S = 0.5
"""How long a lost switch is left alone before it is tried again."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a change wrote, over all switches; `missed` names those that were not reached."""

    inserted: int = 0
    deleted: int = 0
    missed: tuple[str, ...] = ()

    def then(self, removed: Written) -> Written:
        """This, and the removal of what it takes the place of."""
        return Written(self.inserted + removed.inserted, removed.deleted, removed.missed)


class Switchboard:
    """See the module's text. All methods belong to one event loop."""

    def __init__(
        self, fleet: Fleet, next_term: int, deposed: Callable[[SwitchError], None]
    ) -> None:
        """Take over a fleet whose sessions need not be open.

        `deposed` is called when a switch has a primary with an election id of `next_term` or more:
        this controller must end. One below is a guest, who leaves again.
        """
        self._fleet = fleet
        self._next_term = next_term
        self._deposed = deposed
        self._wanted: dict[str, SwitchProgram] = {}
        self._lock = asyncio.Lock()
        self._keepers: list[asyncio.Task[None]] = []
        self._ill: dict[str, SwitchError] = {}
        # Their sessions are open, but a probe got no answer.
        self._silent: dict[str, SwitchError] = {}

    @property
    def troubles(self) -> Mapping[str, SwitchError]:
        """The switches that cannot be written to now, and why."""
        return {**self._silent, **self._ill, **self._fleet.troubles}

    @property
    def silent(self) -> frozenset[str]:
        """The switches that have not answered a probe since."""
        return frozenset(self._silent)

    async def probe(self, names: Iterable[str]) -> None:
        """Ask switches something small: one that does not answer in PROBE_S is in trouble until it
        answers another probe, and is made to hold then what it should."""

        async def one(name: str) -> None:
            limit = asyncio.timeout(PROBE_S)
            try:
                async with limit:
                    await self._fleet.clone_sessions(name)
            except (TimeoutError, SwitchError) as error:
                # A call that is cancelled may end with an error of its own.
                if limit.expired():
                    self._silent[name] = SwitchUnreachableError(
                        name,
                        f"has not answered for {PROBE_S:g} s: look whether its process is stopped",
                    )
                else:
                    # Its keeper is told, and deals with it.
                    _LOG.info("%s", error)
            else:
                if name in self._silent:
                    await self._hear_again(name)

        await self._fleet.each(one, [name for name in names if name not in self._fleet.troubles])

    async def _hear_again(self, name: str) -> None:
        try:
            async with self._lock:
                await self._restore(name)
        except SwitchError as error:
            # The next probe finds it silent, or its keeper lost.
            _LOG.warning("%s", error)
        else:
            del self._silent[name]
            _LOG.warning("%s: answers again", name)

    async def adopt(
        self, programs: Sequence[SwitchProgram], lead: Callable[[str], Awaitable[None]]
    ) -> Mapping[str, tuple[Update, ...]]:
        """Become primary everywhere by `lead`, and make every switch hold its program.

        Returns what had to be written. Switches that do not answer within LEAD_S are left to their
        keepers, which run from now on.
        """
        async with self._lock:
            self._wanted = {program.name: program for program in programs}

            async def one(name: str) -> tuple[Update, ...]:
                try:
                    async with asyncio.timeout(LEAD_S):
                        await lead(name)
                    return await self._restore(name)
                except TimeoutError:
                    _LOG.warning("%s: has not answered for %g s, and is left aside", name, LEAD_S)
                    return ()
                except NotPrimaryError:
                    raise
                except SwitchError as error:
                    _LOG.warning("%s", error)
                    return ()

            written = await self._fleet.each(one)
        self._keepers = [asyncio.create_task(self._keep(name)) for name in self._fleet.names]
        return {name: updates for name, updates in written.items() if updates}

    async def close(self) -> None:
        """End the keepers; the switches stay as they are."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def change(self, programs: Sequence[SwitchProgram]) -> Written:
        """Make the switches hold other programs, all of them or none.

        Raises ChangeRefusedError, naming the switch and its reason, when one refuses or is not
        reached: by then every switch that answers holds what it held before.
        """
        async with self._lock:
            before = dict(self._wanted)
            updates = self._differences(programs)
            errors = {name: self._silent[name] for name in updates.keys() & self._silent.keys()}
            if errors:
                updates = {}
            errors = errors or await self._fleet.change(updates)
            if not errors:
                self._want(programs)
                return _count(updates)
            await self._roll_back(before, updates, errors)
        error = errors[min(errors)]
        more = f" (and {len(errors) - 1} more switches)" if len(errors) > 1 else ""
        raise ChangeRefusedError(f"{error}{more}; every switch is as it was before")

    async def remove(self, programs: Sequence[SwitchProgram]) -> Written:
        """Make the switches hold less; a switch that is not reached gets there when it is back."""
        async with self._lock:
            updates = self._differences(programs)
            self._want(programs)
            silent = {name: self._silent[name] for name in updates.keys() & self._silent.keys()}
            heard = {name: these for name, these in updates.items() if name not in silent}
            errors = {**silent, **await self._fleet.change(heard)}
            for name, error in errors.items():
                _LOG.warning("%s", error)
                if name not in self.troubles:
                    await self._fleet.reconcile([self._wanted[name]])
        done = {name: these for name, these in updates.items() if name not in errors}
        counted = _count(done)
        return Written(counted.inserted, counted.deleted, tuple(sorted(errors)))

    async def link_counts(self) -> Counts:
        """What switches have sent to their parents; those that do not answer are left out."""
        counts: dict[str, dict[Part, LinkCount]] = {}

        async def one(name: str) -> None:
            parts: dict[Part, LinkCount] = {}
            for entry, value in (await self._fleet.direct_counters(name, "upstream")).items():
                match = dict(entry.match)
                job, phase, resent = match["job"], match["phase"], match["resent"]
                if isinstance(job, int) and isinstance(phase, int):
                    more = LinkCount(0, value.packets) if resent else LinkCount(value.packets)
                    parts[job, phase] = parts.get((job, phase), LinkCount()) + more
            counts[name] = parts

        await self._ask(one)
        return counts

    async def outcome_counts(self) -> Mapping[str, Mapping[str, int]]:
        """Packets by switch and what became of them (names of `outcome_t`)."""
        counts: dict[str, Mapping[str, int]] = {}

        async def one(name: str) -> None:
            cells = await self._fleet.counter(name, "outcomes")
            counts[name] = {outcome.name: cells[outcome].packets for outcome in Outcome}

        await self._ask(one)
        return counts

    async def port_counts(self, ports: Mapping[str, Sequence[int]]) -> dict[str, PortCounts]:
        """Frames by port, of some ports of some switches; those that do not answer are left out."""
        arrived: dict[str, dict[int, int]] = {}
        departed: dict[str, dict[int, int]] = {}

        async def read_arrived(name: str) -> None:
            arrived[name] = await self._packets(name, "arrived", ports[name])

        async def read_departed(name: str) -> None:
            departed[name] = await self._packets(name, "departed", ports[name])

        # In this order at all of them: see `controller.cuts`.
        await self._ask(read_arrived, ports)
        await self._ask(read_departed, tuple(arrived))
        return {name: PortCounts(arrived[name], these) for name, these in departed.items()}

    # How it is done

    async def _ask(
        self, one: Callable[[str], Awaitable[None]], names: Iterable[str] | None = None
    ) -> None:
        """Ask every switch that is there, or some; one that goes meanwhile is left out."""

        async def careful(name: str) -> None:
            try:
                async with asyncio.timeout(PROBE_S):
                    await one(name)
            except TimeoutError:
                _LOG.info("%s: does not answer in %g s", name, PROBE_S)
            except SwitchError as error:
                _LOG.info("%s", error)

        wanted = self._fleet.names if names is None else names
        await self._fleet.each(careful, [name for name in wanted if name not in self.troubles])

    async def _packets(self, name: str, counter: str, ports: Sequence[int]) -> dict[int, int]:
        cells = await self._fleet.cells(name, counter, ports)
        return {port: value.packets for port, value in cells.items()}

    def _differences(self, programs: Sequence[SwitchProgram]) -> dict[str, tuple[Update, ...]]:
        """The updates of every switch that changes; both sides as the compiler writes them."""
        updates = {
            program.name: diff(program, self._wanted.get(program.name, SwitchProgram(program.name)))
            for program in programs
        }
        return {name: these for name, these in updates.items() if these}

    def _want(self, programs: Sequence[SwitchProgram]) -> None:
        self._wanted = {program.name: program for program in programs}

    async def _roll_back(
        self,
        before: Mapping[str, SwitchProgram],
        touched: Mapping[str, Sequence[Update]],
        errors: Mapping[str, SwitchError],
    ) -> None:
        for error in errors.values():
            _LOG.warning("a change is taken back: %s", error)
        for name in touched:
            if name in self.troubles:
                continue
            try:
                await self._fleet.reconcile([before[name]])
            except SwitchError as error:
                # Its keeper goes on when it is back; until then nothing of the change is used.
                _LOG.warning("%s", error)

    async def _restore(self, name: str) -> tuple[Update, ...]:
        """Let an open switch run the program and hold what it should; what was written."""
        pushed = await self._fleet.push([name])
        updates = (await self._fleet.reconcile([self._wanted[name]]))[name]
        if pushed:
            _LOG.info("%s: has been given the P4 program and %d entries", name, len(updates))
        return updates

    async def _keep(self, name: str) -> None:
        """Bring the switch back whenever it is lost."""
        while True:
            trouble = await self._fleet.wait_for_trouble(name)
            _LOG.warning("%s", trouble)
            try:
                if isinstance(trouble, NotPrimaryError):
                    await self._yield_to(name, trouble)
                await self._bring_back(name)
            except NotPrimaryError as error:
                self._deposed(error)
                return

    async def _yield_to(self, name: str, guest: NotPrimaryError) -> None:
        """Wait until somebody with a shell has left; raise for the next controller."""
        if guest.other >= self._next_term:
            raise guest
        while isinstance(self._fleet.troubles.get(name), NotPrimaryError):
            await asyncio.sleep(RETRY_S)

    async def _bring_back(self, name: str) -> None:
        """Try until the switch is back; NotPrimaryError where it has another controller."""
        while True:
            try:
                if name in self._fleet.troubles:
                    await self._fleet.open([name])
                async with self._lock:
                    await self._restore(name)
            except SwitchError as error:
                self._ill[name] = error
                if isinstance(error, NotPrimaryError):
                    await self._yield_to(name, error)
                await asyncio.sleep(RETRY_S)
            else:
                self._ill.pop(name, None)
                _LOG.warning("%s: is back", name)
                return


def _count(updates: Mapping[str, Sequence[Update]]) -> Written:
    flat = [update for these in updates.values() for update in these]
    deleted = sum(update.op is Op.DELETE for update in flat)
    return Written(len(flat) - deleted, deleted)
