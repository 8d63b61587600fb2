"""Switches kept at what they should hold: all changes or none, and back after a loss."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.compile import JobPlan, compile_programs
from controller.p4rt import Fleet, SwitchAddress, SwitchError, fleet_of
from controller.placement import Tree
from controller.program import Op, SwitchProgram, TableEntry, Update
from controller.service import switchboard
from controller.service.errors import ChangeRefusedError
from controller.service.switchboard import Switchboard
from p4src import artefacts
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer
from tests.packet.switch_process import SwitchProcess
from tests.unit.controller.trees import topology_of
from topologies.network import wire

DEADLINE_S = 20
TREE = Tree(parent=[-1, 0, 0], rate=[1, 1, 1], load=[1, 2, 2])
NETWORK = wire(topology_of(TREE))
OLD = JobPlan(job=1, epoch=1, blue=frozenset({1}), slot_base=0, window=8)
NEW = JobPlan(job=1, epoch=2, blue=frozenset({0, 2}), slot_base=0, window=8)


@dataclass(slots=True)
class Site:
    """Three switches behind one server, and a fleet for them."""

    server: P4RuntimeServer
    devices: list[Device]
    addresses: list[SwitchAddress]
    fleet: Fleet


@asynccontextmanager
async def _site(election_id: int = 1000) -> AsyncIterator[Site]:
    devices = [Device(device_id=i) for i in (1, 2, 3)]
    server = P4RuntimeServer(devices)
    address = await server.start()
    addresses = [SwitchAddress(f"s{i}", address, i + 1) for i in range(3)]
    try:
        async with fleet_of(addresses, artefacts.load(), election_id=election_id) as fleet:
            yield Site(server, devices, addresses, fleet)
    finally:
        await server.stop()


def _run(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(limited())


def _ignore(error: SwitchError) -> None:
    del error


def _lead(fleet: Fleet, election_id: int = 1000) -> Callable[[str], Coroutine[None, None, None]]:
    return lambda name: fleet.promote(name, election_id)


async def _held(fleet: Fleet) -> dict[str, set[TableEntry]]:
    return {name: set((await fleet.read(name)).entries) for name in fleet.names}


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


def _wanted(fleet: Fleet, programs: tuple[SwitchProgram, ...]) -> dict[str, set[TableEntry]]:
    return {program.name: set(fleet.canonical(program).entries) for program in programs}


def test_a_second_controller_finds_nothing_to_write() -> None:
    async def scenario() -> None:
        async with _site() as site:
            programs = compile_programs(NETWORK, [OLD])
            board = Switchboard(site.fleet, 2000, _ignore)
            written = await board.adopt(programs, _lead(site.fleet))
            assert set(written) == {"s0", "s1", "s2"}
            await board.close()
            async with fleet_of(site.addresses, artefacts.load()) as fleet:
                again = Switchboard(fleet, 3000, _ignore)
                assert await again.adopt(programs, _lead(fleet, 2000)) == {}
                await again.close()

    _run(scenario)


def test_nobody_waits_for_a_switch_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        # Enough for those that do answer, on a busy machine.
        monkeypatch.setattr(switchboard, "LEAD_S", 2.0)
        async with _site() as site:
            board = Switchboard(site.fleet, 2000, _ignore)
            programs = compile_programs(NETWORK, [OLD])
            asked: list[str] = []

            async def lead(name: str) -> None:
                asked.append(name)
                if name == "s1":
                    await asyncio.Event().wait()
                await site.fleet.promote(name, 1000)

            written = await board.adopt(programs, lead)
            assert sorted(asked) == ["s0", "s1", "s2"]
            assert written.keys() == {"s0", "s2"}
            assert "s1" in board.troubles
            # Its keeper goes on, and it answers by now.
            await _until(lambda: not board.troubles)
            assert await _held(site.fleet) == _wanted(site.fleet, programs)
            await board.close()

    _run(scenario)


def test_both_epochs_stand_side_by_side_until_the_old_is_removed() -> None:
    async def scenario() -> None:
        async with _site() as site:
            board = Switchboard(site.fleet, 2000, _ignore)
            await board.adopt(compile_programs(NETWORK, [OLD]), _lead(site.fleet))
            both = compile_programs(NETWORK, [OLD, NEW])
            written = await board.change(both)
            # s0 sums its own worker and what comes from below; s2 sums two workers. Each has an
            # entry of the whole job; each of the seven ports downward has one for requests.
            assert (written.inserted, written.deleted) == (1 + 2 + 1 + 2 + 2 + 7, 0)
            assert await _held(site.fleet) == _wanted(site.fleet, both)
            only_new = compile_programs(NETWORK, [NEW])
            assert (await board.remove(only_new)).deleted == 2 + 1 + 7
            assert await _held(site.fleet) == _wanted(site.fleet, only_new)
            await board.close()

    _run(scenario)


def _is_stopped(pid: int) -> bool:
    """Whether no thread of a process runs any more."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(task.read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)


def test_a_switch_whose_process_is_stopped_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switchboard, "PROBE_S", 0.5)

    async def scenario(process: SwitchProcess) -> None:
        where = [SwitchAddress("s0", process.address, 1)]
        async with fleet_of(where, artefacts.load(), election_id=1000) as fleet:
            board = Switchboard(fleet, 2000, _ignore)
            both, only_new = (compile_programs(NETWORK, plans)[:1] for plans in ([OLD, NEW], [NEW]))
            await board.adopt(both, _lead(fleet))
            assert board.troubles == {}
            process.process.send_signal(signal.SIGSTOP)
            # A busy machine takes its time, and until then it answers.
            await _until(lambda: _is_stopped(process.process.pid))
            await board.probe(["s0"])
            assert board.silent == {"s0"}
            assert "has not answered for 0.5 s" in str(board.troubles["s0"])
            # Nobody waits for it as long as an RPC may take, half a minute.
            async with asyncio.timeout(5):
                assert await board.link_counts() == {}
                with pytest.raises(ChangeRefusedError, match="s0: has not answered"):
                    await board.change(compile_programs(NETWORK, [OLD])[:1])
                assert (await board.remove(only_new)).missed == ("s0",)
            process.process.send_signal(signal.SIGCONT)
            while board.silent:
                await board.probe(["s0"])
            # It was not told what was removed meanwhile, so now it is.
            assert await _held(fleet) == _wanted(fleet, only_new)
            await board.close()

    options = ("--no-p4", "--device-id", "1", "--", "--grpc-server-addr", "127.0.0.1:0")
    with SwitchProcess(tmp_path, *options) as process:
        _run(lambda: scenario(process))


def test_one_refusal_takes_the_change_back_everywhere() -> None:
    async def scenario() -> None:
        async with _site() as site:
            programs = compile_programs(NETWORK, [OLD])
            board = Switchboard(site.fleet, 2000, _ignore)
            await board.adopt(programs, _lead(site.fleet))
            # What another wrote behind the controller's back is in the way at one switch.
            clash = next(
                entry
                for entry in compile_programs(NETWORK, [NEW])[2].entries
                if entry.table == "blue_sources"
            )
            await site.fleet.write("s2", [Update(Op.INSERT, clash)])
            with pytest.raises(ChangeRefusedError, match=r"s2: refused .*ALREADY_EXISTS"):
                await board.change(compile_programs(NETWORK, [OLD, NEW]))
            assert await _held(site.fleet) == _wanted(site.fleet, programs)
            await board.change(compile_programs(NETWORK, [OLD, NEW]))
            await board.close()

    _run(scenario)


def test_a_switch_that_starts_anew_gets_back_what_it_held() -> None:
    async def scenario() -> None:
        async with _site() as site:
            programs = compile_programs(NETWORK, [OLD])
            board = Switchboard(site.fleet, 2000, _ignore)
            await board.adopt(programs, _lead(site.fleet))
            await site.server.stop()
            await _until(lambda: len(board.troubles) == 3)
            with pytest.raises(ChangeRefusedError, match="as it was before"):
                await board.change(compile_programs(NETWORK, [OLD, NEW]))
            fresh = [Device(device_id=i) for i in (1, 2, 3)]
            again = P4RuntimeServer(fresh, site.addresses[0].address)
            await again.start()
            await _until(lambda: not board.troubles)
            assert await _held(site.fleet) == _wanted(site.fleet, programs)
            await board.close()
            await again.stop()

    _run(scenario)


def test_the_next_controller_ends_this_one() -> None:
    async def scenario() -> None:
        async with _site() as site:
            told: list[SwitchError] = []
            board = Switchboard(site.fleet, 2000, told.append)
            await board.adopt(compile_programs(NETWORK, [OLD]), _lead(site.fleet))
            async with fleet_of(site.addresses, artefacts.load(), election_id=2000) as other:
                await other.open()
                await _until(lambda: len(told) == 3)
            assert "2000" in str(told[0])
            await board.close()

    _run(scenario)


def test_a_guest_with_a_shell_is_waited_for_and_tidied_up_after() -> None:
    async def scenario() -> None:
        async with _site() as site:
            told: list[SwitchError] = []
            programs = compile_programs(NETWORK, [OLD])
            board = Switchboard(site.fleet, 2000, told.append)
            await board.adopt(programs, _lead(site.fleet))
            stray = TableEntry.of(
                "upstream", {"job": 9, "phase": 0, "resent": 0}, "to_parent", {"port": 1, "mac": 1}
            )
            async with fleet_of(site.addresses[:1], artefacts.load(), election_id=1500) as guest:
                await guest.open()
                await guest.write("s0", [Update(Op.INSERT, stray)])
                await _until(lambda: "s0" in board.troubles)
                with pytest.raises(ChangeRefusedError, match="election id 1500 is primary"):
                    await board.change(compile_programs(NETWORK, [OLD, NEW]))
            await _until(lambda: not board.troubles)
            wanted = _wanted(site.fleet, programs)
            while await _held(site.fleet) != wanted:
                await asyncio.sleep(0.02)
            assert told == []
            await board.close()

    _run(scenario)


def test_counters_are_read_by_job() -> None:
    async def scenario() -> None:
        async with _site() as site:
            board = Switchboard(site.fleet, 2000, _ignore)
            await board.adopt(compile_programs(NETWORK, [OLD]), _lead(site.fleet))
            counts = await board.link_counts()
            assert {name: set(by_job) for name, by_job in counts.items()} == {
                "s0": {(1, 0), (1, 1)},
                "s1": {(1, 0), (1, 1)},
                "s2": {(1, 0), (1, 1)},
            }
            outcomes = await board.outcome_counts()
            assert set(outcomes) == {"s0", "s1", "s2"}
            assert sum(outcomes["s0"].values()) == 0
            await board.close()

    _run(scenario)
