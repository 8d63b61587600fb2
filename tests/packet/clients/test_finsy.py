"""A foreign controller: finsy's own client drives every target, packets in and out included."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar, cast

import pytest
from finsy import (
    P4ClientError,
    P4CounterEntry,
    P4MulticastGroupEntry,
    P4PacketIn,
    P4PacketOut,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
    Switch,
    SwitchOptions,
)

from controller.program import TableEntry
from tests.packet.targets import Target
from tests.packet.targets_sentinels import PROGRAMS, probe, probe_sentinel

DEADLINE_S = 20.0
ATTEMPT_S = 0.2
DST = 0x02_00_00_00_00_01
FRAME = DST.to_bytes(6, "big") + bytes(54)

Entity = TypeVar("Entity", bound=Any)


def entry(value: TableEntry) -> P4TableEntry:
    """Return an entry as finsy takes it."""
    return P4TableEntry(
        value.table,
        match=P4TableMatch(dict(value.match)),
        action=P4TableAction(value.action, **dict(value.params)),
    )


async def read(switch: Switch, wanted: Entity) -> list[Entity]:
    # finsy declares its asynchronous generator as a coroutine.
    found = cast("AsyncIterator[Entity]", switch.read(wanted))
    return [entity async for entity in found]


async def changes(switch: Switch) -> None:
    """Insert an entry, be refused a second time, modify it, delete it."""
    first, other = (
        entry(TableEntry.of("forward", {"dst_addr": DST}, "to_port", {"port": port}))
        for port in (2, 3)
    )
    await switch.insert([first])
    with pytest.raises(P4ClientError, match="ALREADY_EXISTS"):
        await switch.insert([first])
    await switch.modify([other])
    (there,) = await read(switch, P4TableEntry("forward"))
    assert there.action == other.action
    await switch.delete([first])
    assert await read(switch, P4TableEntry("forward")) == []


def test_finsy_pushes_writes_reads_and_exchanges_packets(target: Target) -> None:
    sentinel = probe_sentinel()
    target.push(probe(), sentinel)
    target.disconnect()
    options = SwitchOptions(
        p4info=PROGRAMS / "probe.p4info.txtpb",
        p4blob=PROGRAMS / "probe.json",
        p4force=True,
        device_id=target.address.device_id,
    )
    to_cpu = entry(TableEntry.of("forward", {"dst_addr": DST}, "to_cpu", {"reason": 5}))

    async def drive() -> P4PacketIn:
        async with Switch("s", target.address.address, options) as switch:
            assert switch.is_primary
            await changes(switch)
            await switch.insert([to_cpu, *map(entry, sentinel.entries)])
            await switch.insert([P4MulticastGroupEntry(3, replicas=[1, 2])])
            (there,) = await read(switch, P4TableEntry("forward"))
            assert (there.match, there.action) == (to_cpu.match, to_cpu.action)
            (group,) = await read(switch, P4MulticastGroupEntry())
            assert set(group.replicas) == {1, 2}
            await switch.write([P4PacketOut(FRAME, egress_port=6, unused=0)])
            packets = switch.read_packets()
            waiting = asyncio.ensure_future(anext(packets))
            while not waiting.done():
                target.send(4, FRAME)
                await asyncio.wait([waiting], timeout=ATTEMPT_S)
            (cell,) = await read(switch, P4CounterEntry("arrived", index=4))
            assert cell.packet_count >= 1
            return waiting.result()

    packet = asyncio.run(asyncio.wait_for(drive(), DEADLINE_S))
    assert packet.payload == FRAME
    assert packet.metadata == {"ingress_port": 4, "reason": 5, "unused": 0}
    assert target.collect(at_least=1) == [(6, FRAME)]
