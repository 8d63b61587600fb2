"""A pipeline pushed while packets run: each runs on the old one or on the new one, end to end."""

import sys
import threading

import pytest

from softswitch import Device
from softswitch.entries import ActionCall, ExactMatch, TableEntry
from softswitch.errors import InvalidPipeline, UnsupportedConstruct
from tests.unit.softswitch.programs import PROGRAMS

ROUTE = "IngressPipe.route"
PUSHES = 200
DEADLINE_S = 10
PACKET = bytes(8) + b"payload"


def version(number: int) -> bytes:
    """The program with another constant; its code is compiled once."""
    text = (PROGRAMS / "version.json").read_text()
    return text.replace("0x0a0a", f"0x{number:04x}").encode()


def stamp(number: int) -> bytes:
    """What leaves: ingress, register and egress of one version, on the second pass."""
    return number.to_bytes(2) * 3 + (1).to_bytes(2) + b"payload"


def route(device: Device, port: int) -> None:
    device.insert_entry(
        TableEntry(ROUTE, (ExactMatch(0),), ActionCall("IngressPipe.out_of", (port,)))
    )


@pytest.fixture
def device() -> Device:
    found = Device()
    found.load_pipeline(version(1))
    route(found, 1)
    return found


def test_every_packet_is_dropped_or_runs_on_one_pipeline(device: Device) -> None:
    allowed = {(number, stamp(number)) for number in (1, 2)}
    outcomes: set[tuple[tuple[int, bytes], ...]] = set()
    failures: list[BaseException] = []
    stop, ran = threading.Event(), threading.Event()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that pushes fall into the middle of packets

    def run() -> None:
        try:
            while not stop.is_set():
                outcomes.add(tuple(device.process(0, PACKET)))
                ran.set()
        except BaseException as error:  # a thread's error is for the test to raise
            failures.append(error)

    packets = threading.Thread(target=run)
    packets.start()
    try:
        for turn in range(PUSHES):
            number = turn % 2 + 1
            device.load_pipeline(version(number))
            route(device, number)
            ran.clear()
            assert ran.wait(DEADLINE_S)
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        packets.join()
    assert not failures
    assert outcomes <= {(), *((one,) for one in allowed)}
    assert outcomes >= {(one,) for one in allowed}


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (b"{", InvalidPipeline),
        (version(2).replace(b'"extract"', b'"x"'), UnsupportedConstruct),
        (version(2).replace(b'"exact"', b'"fuzzy"'), UnsupportedConstruct),
    ],
)
def test_a_failed_push_leaves_the_old_pipeline_running(
    device: Device, broken: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        device.load_pipeline(broken)
    assert device.process(0, PACKET) == [(1, stamp(1))]
    assert len(device.read_entries(ROUTE)) == 1


def test_a_push_empties_tables_and_registers(device: Device) -> None:
    device.process(0, PACKET)
    assert device.register("IngressPipe.version", 0) == 1
    device.load_pipeline(version(2))
    assert device.register("IngressPipe.version", 0) == 0
    assert device.process(0, PACKET) == []
