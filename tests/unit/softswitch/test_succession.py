"""A pipeline that follows another without a gap: what goes on, what starts anew."""

import json

import pytest

from softswitch import Device
from softswitch.entries import (
    ActionCall,
    CounterData,
    ExactMatch,
    MeterConfig,
    Replica,
    TableEntry,
)
from tests.unit.softswitch.programs import PROGRAMS

READ, WRITE, COUNT = 1, 2, 3
CELLS, SEEN, PACED = "IngressPipe.cells", "IngressPipe.seen", "IngressPipe.paced"
CONFIG = MeterConfig(1, 1, 2, 2)


def request(code: int, index: int, value: int = 0) -> bytes:
    return bytes([code]) + index.to_bytes(4) + value.to_bytes(4)


def state(**sizes: int) -> bytes:
    """The program of tests/programs/state.p4, with arrays of other sizes."""
    program = json.loads((PROGRAMS / "state.json").read_text())
    for array in (*program["register_arrays"], *program["counter_arrays"]):
        array["size"] = sizes.get(array["name"].rpartition(".")[2], array.get("size"))
    return json.dumps(program).encode()


def entry() -> TableEntry:
    return TableEntry(PACED, (ExactMatch(3),), ActionCall("IngressPipe.colour_it"))


def colour(device: Device) -> int:
    ((_, frame),) = device.process(1, request(13, 3), 50)
    return int.from_bytes(frame[5:9])


@pytest.fixture
def device() -> Device:
    found = Device(queues=2)
    found.load_pipeline(state())
    found.create_multicast_group(1, (Replica(1),))
    found.process(1, request(WRITE, 5, 77))
    found.process(1, request(COUNT, 6))
    found.insert_entry(entry())
    found.set_direct_meter(PACED, (ExactMatch(3),), 0, CONFIG)
    return found


def succeed(device: Device, program: bytes) -> None:
    staged = device.stage_pipeline(program)
    staged.insert_entry(entry())
    staged.set_direct_meter(PACED, (ExactMatch(3),), 0, CONFIG)
    device.succeed(staged)


def test_cells_go_on(device: Device) -> None:
    assert [colour(device) for _ in range(2)] == [0, 1]
    # another program: its tables have another size
    succeed(device, state().replace(b'"max_size": 1024', b'"max_size": 512'))
    assert device.register(CELLS, 5) == 77
    assert device.counter(SEEN, 6) == CounterData(1, 9)
    # the bucket is as empty as it was
    assert colour(device) == 2
    device.process(1, request(COUNT, 6))
    assert device.counter(SEEN, 6).packets == 2
    assert device.multicast_groups() == {1: (Replica(1),)}


def test_what_is_declared_otherwise_starts_anew(device: Device) -> None:
    succeed(device, state(cells=8, seen=16))
    assert device.register(CELLS, 5) == 0
    assert device.counter(SEEN, 6).packets == 1
    succeed(device, state(cells=8, seen=8))
    assert device.counter(SEEN, 6).packets == 0


def test_an_entry_without_a_counter_before_starts_at_0() -> None:
    probe = (PROGRAMS / "probe.json").read_bytes()
    without = json.loads(probe)
    for pipeline in without["pipelines"]:
        for table in pipeline["tables"]:
            table["with_counters"] = False
    without["counter_arrays"] = [c for c in without["counter_arrays"] if not c["is_direct"]]
    device = Device()
    device.load_pipeline(json.dumps(without).encode())
    key = (ExactMatch(7),)
    forward = TableEntry("ProbeIngress.forward", key, ActionCall("ProbeIngress.to_port", (2,)))
    device.insert_entry(forward)
    frame = (7).to_bytes(6) + bytes(54)
    device.process(1, frame)
    staged = device.stage_pipeline(probe)
    staged.insert_entry(forward)
    device.succeed(staged)
    assert device.process(1, frame) == [(2, frame)]
    assert device.direct_counter("ProbeIngress.forward", key).packets == 1
    assert device.counter("ProbeIngress.arrived", 1).packets == 2


def test_a_staged_pipeline_is_not_in_force(device: Device) -> None:
    staged = device.stage_pipeline((PROGRAMS / "copies.json").read_bytes())
    assert device.program.registers
    assert not staged.program.registers
    # groups are the device's, before and after
    staged.create_multicast_group(2, (Replica(1),))
    assert set(device.multicast_groups()) == {1, 2}


def test_a_first_pipeline_succeeds_nothing() -> None:
    device = Device()
    device.succeed(device.stage_pipeline(state()))
    assert device.process(1, request(READ, 5)) == [(1, request(READ, 5))]
