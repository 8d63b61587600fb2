"""The shipped program: random packets leave no exception and no stray state; scale of a process."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.bench_switch import loaded, message
from softswitch.switch import Switch
from tests.unit.softswitch.programs import PROGRAMS, SHIPPED

LANES = 128


@pytest.fixture(scope="module")
def packets() -> list[bytes]:
    """Truncations, bit flips and noise, some thousand in all."""
    draw = random.Random(1)
    whole = message(1, 1, 5)
    found = [whole[:size] for size in range(len(whole))]
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        found.append(bytes(damaged[: draw.choice([len(damaged), draw.randrange(len(damaged))])]))
    found += [draw.randbytes(draw.randrange(300)) for _ in range(1000)]
    return found


def test_random_packets_leave_no_exception(packets: list[bytes]) -> None:
    switch = loaded()
    for packet in packets:
        switch.process(1, packet)
    total = sum(c.packets for c in switch.device.counters(_outcomes(switch)))
    assert total == len(packets)


@pytest.mark.parametrize("name", ["copies", "parsing", "state", "tables", "arithmetic"])
def test_random_packets_on_every_program(name: str) -> None:
    draw = random.Random(2)
    switch = Switch.load(PROGRAMS / f"{name}.json")
    switch.multicast_group(9, [(1, 1), (2, 1)])
    switch.mirror(5, 1)
    switch.mirror(6, 1)
    for _ in range(2000):
        packet = draw.randbytes(draw.randrange(60))
        if packet and draw.random() < 0.7:
            packet = bytes([draw.randrange(16)]) + packet[1:]
        for _, data in switch.process(draw.choice([0, 1, 510]), packet):
            assert isinstance(data, bytes)


def test_packets_of_an_unregistered_port_change_no_slot(packets: list[bytes]) -> None:
    switch = loaded()
    for packet in packets:
        switch.process(7, packet)
    for register in switch.program.registers.values():
        assert all(switch.register(register.name, i) == 0 for i in range(register.size))


def test_a_sum_leaves_and_what_is_not_touched_stays() -> None:
    switch = loaded()
    assert switch.process(1, message(1, 1, 7)) == []
    ((port, out),) = switch.process(2, message(1, 2, 7))
    assert port == 4
    whole = message(1, 2, 7)
    lanes = [
        int.from_bytes(out[-LANES + i : len(out) - LANES + i + 4], signed=True)
        for i in range(0, LANES, 4)
    ]
    assert lanes == [2 * v for v in range(-16, 16)]
    assert out[6:14] == whole[6:14]
    assert out[0:6] == bytes.fromhex("020000000004")


def _outcomes(switch: Switch) -> str:
    (name,) = (name for name in switch.program.counters if name.endswith(".outcomes"))
    return name


def test_a_process_carries_255_switches() -> None:
    """Under 5 s and 1 GiB, as a process of its own, so that nothing else is measured."""
    script = (
        "import resource, time, sys\n"
        "from softswitch import Switch\n"
        "start = time.monotonic()\n"
        "all = [Switch.load(sys.argv[1]) for _ in range(255)]\n"
        "seconds = time.monotonic() - start\n"
        "print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(SHIPPED)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    seconds, kibibytes = run.stdout.split()
    assert float(seconds) < 5
    assert int(kibibytes) < 1 << 20
