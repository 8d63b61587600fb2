"""Drop, multicast, clones, resubmit, recirculate, truncate, packet-in and packet-out."""

from dataclasses import dataclass

import pytest

from softswitch.device import Device
from softswitch.entries import CloneSession, Replica
from softswitch.errors import AlreadyExists, InvalidArgument, NotFound
from softswitch.queued import MAX_PASSES
from softswitch.switch import Switch
from tests.unit.softswitch.programs import PROGRAMS, load

CPU = 510


@dataclass(frozen=True, slots=True)
class Copy:
    """A packet that left, taken apart."""

    out: int
    code: int
    kept: int
    argument: int
    port: int
    rid: int
    instance_type: int
    length: int
    rest: bytes


def order(code: int, argument: int = 0) -> bytes:
    return bytes([code, 0]) + argument.to_bytes(2) + bytes(7) + b"payload"


def run(switch: Switch, code: int, argument: int = 0) -> list[Copy]:
    copies: list[Copy] = []
    for out, data in switch.process(3, order(code, argument)):
        argument, port, rid = (int.from_bytes(data[i : i + 2]) for i in (2, 4, 6))
        length = int.from_bytes(data[9:11])
        copies.append(Copy(out, data[0], data[1], argument, port, rid, data[8], length, data[11:]))
    return copies


@pytest.fixture
def switch() -> Switch:
    switch = load("copies")
    switch.multicast_group(9, [(1, 10), (2, 20), (2, 21)])
    switch.mirror(5, 7)
    switch.mirror(6, 8)
    return switch


def test_unicast(switch: Switch) -> None:
    assert run(switch, 0, 4) == [Copy(4, 0, 0, 4, 4, 0, 0, 18, b"payload")]


def test_drop(switch: Switch) -> None:
    assert run(switch, 1) == []
    assert run(switch, 0, 511) == []


def test_assigning_a_port_after_a_drop_sends(switch: Switch) -> None:
    assert [c.out for c in run(switch, 5)] == [7]


def test_drop_in_egress(switch: Switch) -> None:
    assert run(switch, 13, 4) == []


def test_another_drop_port() -> None:
    device = Device(drop_port=9)
    device.load_pipeline((PROGRAMS / "copies.json").read_bytes())
    switch = Switch(device)
    assert [c.out for c in run(switch, 0, 511)] == [511]
    assert run(switch, 0, 9) == []
    assert run(switch, 1) == []
    assert [c.out for c in run(switch, 5)] == [7]
    assert run(switch, 13, 4) == []
    # the same program on a device with the usual one
    assert [c.out for c in run(load("copies"), 0, 9)] == [9]


def test_multicast_with_instances(switch: Switch) -> None:
    copies = run(switch, 2, 9)
    assert [(c.out, c.port, c.rid, c.instance_type) for c in copies] == [
        (1, 1, 10, 5),
        (2, 2, 20, 5),
        (2, 2, 21, 5),
    ]


def test_a_group_that_nobody_programmed_drops(switch: Switch) -> None:
    assert run(switch, 2, 8) == []


def test_mark_to_drop_clears_the_group(switch: Switch) -> None:
    assert run(switch, 3, 9) == []


def test_a_group_set_after_the_drop_is_tested_before_the_drop_port(switch: Switch) -> None:
    assert [c.out for c in run(switch, 4, 9)] == [1, 2, 2]


def test_ingress_clone_is_the_packet_as_it_came(switch: Switch) -> None:
    clone, original = run(switch, 6, 4)
    assert (clone.out, clone.instance_type, clone.argument, clone.kept) == (7, 1, 4, 0x66)
    assert (original.out, original.instance_type, original.argument) == (4, 0, 0xBEEF)


def test_clone_to_a_session_that_is_not_there(switch: Switch) -> None:
    switch.device.delete_clone_session(5)
    assert [c.out for c in run(switch, 6, 4)] == [4]


def test_clone_session_with_several_replicas_and_a_length(switch: Switch) -> None:
    session = CloneSession(5, (Replica(7, 1), Replica(8, 2)), max_length=11)
    switch.device.modify_clone_session(session)
    copies = run(switch, 6, 4)
    assert [(c.out, c.rid, c.rest) for c in copies] == [
        (7, 1, b""),
        (8, 2, b""),
        (4, 0, b"payload"),
    ]
    assert switch.device.clone_sessions()[5] == session


def test_resubmit_keeps_only_the_field_list(switch: Switch) -> None:
    assert [(c.out, c.kept, c.instance_type) for c in run(switch, 7, 4)] == [(4, 0x55, 0)]


def test_recirculate_keeps_only_the_field_list(switch: Switch) -> None:
    copies = run(switch, 8, 4)
    assert [(c.out, c.kept, c.length) for c in copies] == [(4, 0x33, 18)]


def test_egress_clone(switch: Switch) -> None:
    copies = run(switch, 9, 4)
    assert [(c.out, c.instance_type, c.kept) for c in copies] == [(4, 0, 0), (8, 2, 0x11)]


def test_truncate(switch: Switch) -> None:
    ((_, data),) = switch.process(3, order(10, 4))
    assert data == bytes([10, 0, 0, 4])


def test_endless_resubmission_ends(switch: Switch) -> None:
    assert run(switch, 12, 4) == []
    assert MAX_PASSES < 1000


def test_packet_in_and_packet_out(switch: Switch) -> None:
    ((port, data),) = switch.process(3, order(11))
    assert port == CPU
    assert int.from_bytes(data[:2]) >> 7 == 3
    assert data[2] == 11
    ((port, data),) = switch.process(CPU, (6 << 7).to_bytes(2) + order(0))
    assert port == 6
    assert data[11:] == b"payload"


def test_a_short_packet_still_runs_the_ingress(switch: Switch) -> None:
    assert switch.process(3, b"short") == []


def test_groups(switch: Switch) -> None:
    device = switch.device
    with pytest.raises(AlreadyExists):
        device.create_multicast_group(9, ())
    with pytest.raises(InvalidArgument, match=r"1\.\.65535"):
        device.create_multicast_group(0, ())
    with pytest.raises(InvalidArgument, match="comes twice"):
        device.modify_multicast_group(9, (Replica(1, 1), Replica(1, 1)))
    with pytest.raises(NotFound):
        device.modify_multicast_group(10, ())
    assert device.multicast_groups()[9] == (Replica(1, 10), Replica(2, 20), Replica(2, 21))
    device.delete_multicast_group(9)
    with pytest.raises(NotFound):
        device.delete_multicast_group(9)
    assert run(switch, 2, 9) == []


@pytest.mark.parametrize("queues", [1, 2, 8])
def test_a_priority_without_a_queue_drops_the_packet(queues: int) -> None:
    device = Device(queues=queues)
    device.load_pipeline((PROGRAMS / "copies.json").read_bytes())
    for priority in range(8):
        packet = bytes([14, priority]) + (4).to_bytes(2) + bytes(7)
        assert [port for port, _ in device.process(3, packet)] == [4] * (priority < queues)
