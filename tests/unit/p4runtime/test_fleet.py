"""The client on many switches: push, reconcile, counters, and errors that name things."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from controller.p4rt import (
    CounterValue,
    DeadlineExceededError,
    EntryRefusedError,
    NotPrimaryError,
    PipelineMissingError,
    PipelineRefusedError,
    RequestRefusedError,
    SchemaError,
    SwitchAddress,
    SwitchUnreachableError,
    connect,
    connect_blocking,
)
from controller.p4rt.session import WRITE_BATCH
from controller.program import MulticastGroup, Op, SwitchProgram, TableEntry, Update
from p4src import artefacts
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread
from tests.packet.targets import Program
from tests.packet.targets_sentinels import probe
from tests.unit.p4runtime.conftest import Rack

ME = 3


def forward(dst: int, port: int = 1) -> TableEntry:
    return TableEntry.of("forward", {"dst_addr": dst}, "to_port", {"port": port})


def program(
    name: str, *entries: TableEntry, groups: tuple[MulticastGroup, ...] = ()
) -> SwitchProgram:
    return SwitchProgram(name, entries, groups)


def test_push_is_done_once(rack: Rack) -> None:
    with connect_blocking(rack.switches, probe()) as fleet:
        assert fleet.push() == {"s1", "s2", "s3", "s4"}
        fleet.write("s2", [Update(Op.INSERT, forward(1))])
        assert fleet.push() == frozenset()
        assert fleet.read("s2").entries == (forward(1),)
    with connect_blocking(rack.switches, Program.fresh(probe())) as fleet:
        assert fleet.push() == {"s1", "s2", "s3", "s4"}
        assert fleet.read("s2") == program("s2")


def test_reconcile_writes_what_differs(rack: Rack) -> None:
    groups = (MulticastGroup(1, ((1, 1), (2, 1))),)
    wanted = [program(where.name, forward(1), forward(2), groups=groups) for where in rack.switches]
    with connect_blocking(rack.switches, probe()) as fleet:
        fleet.push()
        assert {len(updates) for updates in fleet.reconcile(wanted).values()} == {3}
        # Somebody meddles: one entry changed, one gone, one too many, a group with another replica.
        meddling = [
            Update(Op.MODIFY, forward(1, port=7)),
            Update(Op.DELETE, forward(2)),
            Update(Op.INSERT, forward(3)),
            Update(Op.MODIFY, MulticastGroup(1, ((3, 1),))),
        ]
        fleet.write("s3", meddling)
        written = fleet.reconcile(wanted)
        assert {update.op for update in written["s3"]} == {Op.INSERT, Op.MODIFY, Op.DELETE}
        assert [written[name] for name in ("s1", "s2", "s4")] == [(), (), ()]
        assert {fleet.read(p.name) == p for p in wanted} == {True}


def test_five_controllers_one_after_the_other_change_nothing(rack: Rack) -> None:
    wanted = [
        program(where.name, forward(1), groups=(MulticastGroup(1, ((1, 1),)),))
        for where in rack.switches
    ]
    for restart in range(5):
        with connect_blocking(rack.switches, probe(), election_id=ME) as fleet:
            fleet.push()
            written = fleet.reconcile(wanted)
            assert all(bool(updates) is (restart == 0) for updates in written.values())


def test_a_program_for_a_stranger_is_an_error(rack: Rack) -> None:
    with connect_blocking(rack.switches, probe()) as fleet, pytest.raises(KeyError, match="s9"):
        fleet.reconcile([program("s9")])


def test_counters_are_read_by_name(rack: Rack) -> None:
    with connect_blocking(rack.switches, probe()) as fleet:
        fleet.push()
        fleet.reconcile([program("s1", forward(1), forward(2))])
        frame = (2).to_bytes(6, "big") + bytes(54)
        for _ in range(3):
            assert rack.devices[0].process(5, frame) == [(1, frame)]
        assert fleet.direct_counters("s1", "forward") == {
            forward(1): CounterValue(0, 0),
            forward(2): CounterValue(3, 180),
        }
        assert fleet.counter("s1", "arrived")[5] == CounterValue(3, 180)
        every = fleet.all_counters("arrived")
        assert {name: cells[5].packets for name, cells in every.items()} == {
            "s1": 3,
            "s2": 0,
            "s3": 0,
            "s4": 0,
        }
        with pytest.raises(SchemaError, match="s1: table acl has no direct counter"):
            fleet.direct_counters("s1", "acl")
        with pytest.raises(SchemaError, match="no P4Counter named 'arive'"):
            fleet.counter("s1", "arive")


def test_all_refusals_of_a_batch_are_named(rack: Rack) -> None:
    updates = [Update(Op.DELETE, forward(dst)) for dst in range(WRITE_BATCH + 1)]
    with connect_blocking(rack.switches, probe()) as fleet:
        fleet.push()
        with pytest.raises(EntryRefusedError) as caught:
            fleet.write("s2", updates)
    assert [refusal.update for refusal in caught.value.refusals] == updates[:WRITE_BATCH]
    assert {refusal.code for refusal in caught.value.refusals} == {"NOT_FOUND"}
    text = str(caught.value)
    assert text.startswith("s2: refused delete forward[dst_addr=0] -> to_port(port=1): NOT_FOUND ")
    assert text.endswith("(and 199 more)")
    assert "\n" not in text


def test_a_full_table_is_resource_exhausted(rack: Rack) -> None:
    with connect_blocking(rack.switches, probe()) as fleet:
        fleet.push()
        with pytest.raises(EntryRefusedError, match="RESOURCE_EXHAUSTED") as caught:
            fleet.reconcile([program("s1", *(forward(dst) for dst in range(9)))])
        assert [refusal.update.entity for refusal in caught.value.refusals] == [forward(8)]


def test_nothing_is_sent_when_a_name_is_wrong(rack: Rack) -> None:
    updates = [Update(Op.INSERT, forward(1)), Update(Op.INSERT, TableEntry.of("nat", {}, "drop"))]
    with connect_blocking(rack.switches, probe()) as fleet:
        fleet.push()
        with pytest.raises(SchemaError, match=r"s1: nat\[\] -> drop\(\): no P4Table named 'nat'"):
            fleet.write("s1", updates)
        assert fleet.read("s1").entries == ()


def test_another_primary_is_named(rack: Rack) -> None:
    with connect_blocking(rack.switches, probe(), election_id=1 << 90) as winner:
        with (
            pytest.raises(NotPrimaryError, match=rf"s1: .*election id {1 << 90} is primary"),
            connect_blocking(rack.switches[:1], probe(), election_id=ME),
        ):
            pass
        with (
            pytest.raises(NotPrimaryError, match=rf"s1: another controller uses .*{1 << 90}"),
            connect_blocking(rack.switches[:1], probe(), election_id=1 << 90),
        ):
            pass
        assert winner.push()


def test_a_takeover_is_said_by_the_next_write(rack: Rack) -> None:
    with connect_blocking(rack.switches, probe(), election_id=ME) as first:
        first.push()
        with connect_blocking(rack.switches[:1], probe(), election_id=ME + 1) as second:
            second.write("s1", [Update(Op.INSERT, forward(1))])
            with pytest.raises(NotPrimaryError, match="s1: "):
                first.write("s1", [Update(Op.INSERT, forward(2))])
            first.write("s2", [Update(Op.INSERT, forward(2))])


def test_a_switch_without_program_says_so(rack: Rack) -> None:
    with (
        connect_blocking(rack.switches, probe()) as fleet,
        pytest.raises(PipelineMissingError, match="s1: runs no P4 program yet"),
    ):
        fleet.read("s1")


def test_a_refused_program_says_why(rack: Rack) -> None:
    broken = Program(b"{}", probe().p4info, 1)
    with (
        connect_blocking(rack.switches, broken) as fleet,
        pytest.raises(PipelineRefusedError, match="does not take the P4 program"),
    ):
        fleet.push()


def test_an_unknown_device_says_so(rack: Rack) -> None:
    where = SwitchAddress("ghost", rack.switches[0].address, 99)
    with (
        pytest.raises(RequestRefusedError, match=r"ghost: .*NOT_FOUND .*99") as caught,
        connect_blocking([where], probe()),
    ):
        pass
    assert caught.value.code == "NOT_FOUND"


def test_nobody_there_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        # Bound, and nobody listens.
        with (
            pytest.raises(SwitchUnreachableError, match=f"s1: no P4Runtime server .*{address}"),
            connect_blocking([SwitchAddress("s1", address, 1)], probe()),
        ):
            pass


def test_a_mute_switch_is_given_up_at_the_deadline() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        started = time.monotonic()
        with (
            pytest.raises(
                (DeadlineExceededError, SwitchUnreachableError), match=f"s1: .*{address}"
            ),
            connect_blocking([SwitchAddress("s1", address, 1)], probe(), deadline=0.5),
        ):
            pass
        assert time.monotonic() - started < 10


def test_a_switch_that_dies_is_unreachable() -> None:
    device = Device(device_id=1)
    server = ServerThread(P4RuntimeServer([device]))
    where = SwitchAddress("s1", server.start(), 1)
    with connect_blocking([where], probe(), deadline=2.0) as fleet:
        fleet.push()
        server.stop()
        with pytest.raises(SwitchUnreachableError, match="s1: "):
            fleet.read("s1")


def test_names_must_differ(rack: Rack) -> None:
    with (
        pytest.raises(ValueError, match="names must differ"),
        connect_blocking([rack.switches[0]] * 2, probe()),
    ):
        pass
    with (
        pytest.raises(ValueError, match="election id 0"),
        connect_blocking(rack.switches, probe(), election_id=0),
    ):
        pass


def test_client_and_server_may_share_a_loop() -> None:
    async def run() -> frozenset[str]:
        devices = [Device(device_id=i) for i in (1, 2)]
        async with P4RuntimeServer(devices) as server:
            switches = [SwitchAddress(f"s{i}", server.address, i) for i in (1, 2)]
            async with connect(switches, probe()) as fleet:
                return await fleet.push()

    assert asyncio.run(run()) == {"s1", "s2"}


def test_255_switches_of_the_shipped_program_within_seconds() -> None:
    devices = [Device(device_id=i) for i in range(1, 256)]
    groups = (MulticastGroup(1, ((1, 1), (2, 1))),)
    entries = tuple(
        TableEntry.of(
            "ipv4_routes", {"dst_addr": (0x0A00_0000 + i, 32)}, "route", {"port": 1, "mac": i}
        )
        for i in range(20)
    )
    with ServerThread(P4RuntimeServer(devices)) as server:
        switches = [SwitchAddress(f"s{d.device_id}", server.address, d.device_id) for d in devices]
        wanted = [SwitchProgram(where.name, entries, groups) for where in switches]
        started = time.monotonic()
        with connect_blocking(switches, artefacts.load()) as fleet:
            assert len(fleet.push()) == 255
            assert sum(map(len, fleet.reconcile(wanted).values())) == 255 * 21
        seconds = time.monotonic() - started
    assert seconds < 10
