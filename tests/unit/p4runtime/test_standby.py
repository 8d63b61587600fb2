"""Controllers that take over from each other, and writes to many switches of which some refuse."""

from __future__ import annotations

import asyncio

import pytest

from controller.p4rt import (
    EntryRefusedError,
    NotPrimaryError,
    SwitchAddress,
    SwitchUnreachableError,
    connect,
    fleet_of,
)
from controller.program import Op, TableEntry, Update
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer
from tests.packet.targets_sentinels import probe
from tests.unit.p4runtime.conftest import Rack

DEADLINE_S = 10


def _insert(dst: int) -> Update:
    return Update(
        Op.INSERT, TableEntry.of("forward", {"dst_addr": dst}, "to_port", {"port": dst % 8})
    )


def test_a_standby_waits_and_then_takes_over(rack: Rack) -> None:
    async def scenario() -> None:
        async with (
            connect(rack.switches, probe(), election_id=1000) as first,
            fleet_of(rack.switches, probe(), election_id=7) as second,
        ):
            await first.push()
            await second.open(standby=True)
            assert second.troubles.keys() == {"s1", "s2", "s3", "s4"}
            with pytest.raises(NotPrimaryError):
                await second.write("s1", [_insert(1)])
            await second.each(lambda name: second.promote(name, 2000))
            assert second.troubles == {}
            await second.write("s1", [_insert(1)])
            trouble = await asyncio.wait_for(first.wait_for_trouble("s1"), DEADLINE_S)
            assert "2000" in str(trouble)
            with pytest.raises(NotPrimaryError):
                await first.write("s1", [_insert(2)])

    asyncio.run(scenario())


def test_a_standby_is_promoted_after_the_primary_has_gone(rack: Rack) -> None:
    async def scenario() -> None:
        async with fleet_of(rack.switches, probe(), election_id=7) as second:
            async with connect(rack.switches, probe(), election_id=1000) as first:
                await first.push()
                await second.open(standby=True)
            await second.each(lambda name: second.promote(name, 2000))
            await second.write("s4", [_insert(1)])

    asyncio.run(scenario())


def test_a_lower_bid_does_not_promote(rack: Rack) -> None:
    async def scenario() -> None:
        async with (
            connect(rack.switches, probe(), election_id=1000),
            fleet_of(rack.switches, probe(), election_id=7) as second,
        ):
            await second.open(standby=True)
            with pytest.raises(NotPrimaryError, match="1000"):
                await second.promote("s1", 8)

    asyncio.run(scenario())


def test_a_switch_that_comes_back_is_opened_again() -> None:
    async def scenario() -> None:
        server = P4RuntimeServer([Device(device_id=1)])
        address = await server.start()
        where = SwitchAddress("s1", address, 1)
        async with fleet_of([where], probe()) as fleet:
            await fleet.open()
            await server.stop()
            trouble = await asyncio.wait_for(fleet.wait_for_trouble("s1"), DEADLINE_S)
            assert isinstance(trouble, SwitchUnreachableError)
            again = P4RuntimeServer([Device(device_id=1)], address)
            await again.start()
            async with asyncio.timeout(DEADLINE_S):
                while fleet.troubles:
                    try:
                        await fleet.open(["s1"])
                    except SwitchUnreachableError:
                        await asyncio.sleep(0.05)
            assert await fleet.push(["s1"]) == {"s1"}
            await fleet.write("s1", [_insert(1)])
            await again.stop()

    asyncio.run(scenario())


def test_every_switch_is_written_though_one_refuses(rack: Rack) -> None:
    async def scenario() -> None:
        async with connect(rack.switches, probe()) as fleet:
            await fleet.push()
            await fleet.write("s2", [_insert(1)])
            errors = await fleet.change({where.name: [_insert(1)] for where in rack.switches})
            assert errors.keys() == {"s2"}
            assert isinstance(errors["s2"], EntryRefusedError)
            held = await fleet.each(fleet.read)
            assert {len(program.entries) for program in held.values()} == {1}

    asyncio.run(scenario())
