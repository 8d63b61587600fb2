"""Ports of a `softswitch` process on real interfaces: what passes, what is lost, what is said.

The probe program forwards by destination; port 2 is where its frames go to.
"""

from __future__ import annotations

import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from controller.p4rt import BlockingFleet, SwitchAddress, connect_blocking
from controller.program import Op, TableEntry, Update
from softswitch.ports.pair import create_pair, delete_pair
from tests.packet.switch_process import SwitchProcess, Wire, wait_for
from tests.packet.targets import Program
from tests.packet.targets_process import free_port, why_not
from tests.packet.targets_sentinels import PROGRAMS, probe

DST = 0x02_00_00_00_00_01
OTHER_DST = DST + 1
IFF_PROMISC = 0x100

pytestmark = pytest.mark.skipif(
    why_not(sys.executable) is not None, reason=str(why_not(sys.executable))
)


def frame(payload: bytes = b"", dst: int = DST, ether_type: int = 0x88B5) -> bytes:
    header = dst.to_bytes(6, "big") + bytes.fromhex("020000000099")
    return (header + ether_type.to_bytes(2, "big") + payload).ljust(60, b"\0")


class Bench:
    """A switch on two links, and what a test needs to drive it."""

    def __init__(self, directory: Path) -> None:
        token = secrets.token_hex(3)
        self.here = {n: f"sc{token}h{n}" for n in (1, 2, 3)}
        self.there = {n: f"sc{token}s{n}" for n in (1, 2, 3)}
        self.directory = directory
        self.ports = directory / "ports"
        self.wires: dict[int, Wire] = {}

    def link(self, port: int, mtu: int = 1500) -> None:
        create_pair(self.here[port], self.there[port], mtu)
        self.wires[port] = Wire(self.here[port])

    def unlink(self, port: int) -> None:
        if port in self.wires:
            self.wires.pop(port).close()
        delete_pair(self.here[port])

    def list_ports(self, *ports: int) -> None:
        self.ports.write_text("".join(f"{n}@{self.there[n]}\n" for n in ports))

    def start(self, *options: str) -> SwitchProcess:
        return SwitchProcess(
            self.directory,
            *("--no-p4", "--device-id", "1", "--ports", str(self.ports)),
            *options,
            *("--", "--grpc-server-addr", f"127.0.0.1:{free_port()}", "--cpu-port", "510"),
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    try:
        yield bench
    finally:
        for port in (1, 2, 3):
            bench.unlink(port)


@pytest.fixture
def switch(bench: Bench) -> Iterator[SwitchProcess]:
    """A switch on links 1 and 2 that logs all it does."""
    bench.link(1)
    bench.link(2)
    bench.list_ports(1, 2)
    with bench.start("--log-console", "--log-level", "debug") as switch:
        yield switch


@pytest.fixture
def fleet(switch: SwitchProcess) -> Iterator[BlockingFleet]:
    """The controller of the switch; frames to DST leave by port 2."""
    program = Program.fresh(probe())
    address = SwitchAddress("s", switch.address, 1)
    with connect_blocking([address], program, election_id=1) as fleet:
        fleet.push()
        forward(fleet, DST, 2)
        yield fleet


def forward(fleet: BlockingFleet, dst: int, port: int) -> None:
    entry = TableEntry.of("forward", {"dst_addr": dst}, "to_port", {"port": port})
    fleet.write("s", [Update(Op.INSERT, entry)])


@pytest.mark.usefixtures("fleet")
def test_the_log_says_what_bmv2_says(bench: Bench, switch: SwitchProcess) -> None:
    bench.wires[1].send(frame())
    assert bench.wires[2].receive() == frame()
    bench.wires[1].send(frame(dst=OTHER_DST))
    switch.await_line("[1.0] [cxt 0] Dropping packet at the end of ingress")
    for line in (
        "Calling target program-options parser",
        f"Adding interface {bench.there[1]} as port 1",
        f"Server listening on {switch.address}",
        "[0.0] [cxt 0] Processing packet received on port 1",
        "[0.0] [cxt 0] Egress port is 2",
        "[0.0] [cxt 0] Transmitting packet of size 60 out of port 2",
    ):
        assert any(line in said for said in switch.lines())


def test_frames_that_leave_do_not_come_back_in(bench: Bench, fleet: BlockingFleet) -> None:
    for _ in range(10):
        bench.wires[1].send(frame())
        assert bench.wires[2].receive() == frame()
    arrived = fleet.counter("s", "arrived")
    assert (arrived[1].packets, arrived[2].packets) == (10, 0)


def test_an_interface_that_goes_with_frames_in_it_takes_the_port_alone(
    bench: Bench, fleet: BlockingFleet, switch: SwitchProcess
) -> None:
    """The switch hears of the frames and of the end of the interface at the same moment."""
    forward(fleet, OTHER_DST, 1)
    switch.process.send_signal(signal.SIGSTOP)
    status = Path(f"/proc/{switch.process.pid}/status")
    wait_for(lambda: "State:\tT" in status.read_text() or None, switch.evidence)
    bench.wires[1].send(frame())
    bench.unlink(1)
    switch.process.send_signal(signal.SIGCONT)
    switch.await_line(f"interface {bench.there[1]} is gone")
    # It goes on: a frame for the lost port is dropped, and one from there comes no more.
    bench.wires[2].send(frame(dst=OTHER_DST))
    switch.await_line("Port 1 has no interface: packets to it are dropped")
    assert switch.process.poll() is None


@pytest.mark.usefixtures("fleet")
def test_vlan_tags_pass(bench: Bench) -> None:
    tagged = frame()[:12] + b"\x81\x00\x60\x05" + frame(b"inside")[12:]
    bench.wires[1].send(tagged)
    assert bench.wires[2].receive() == tagged


@pytest.mark.usefixtures("fleet")
def test_interfaces_are_promiscuous_while_they_are_ports(
    bench: Bench, switch: SwitchProcess
) -> None:
    def flags() -> int:
        return int(Path(f"/sys/class/net/{bench.there[1]}/flags").read_text(), 16)

    assert flags() & IFF_PROMISC
    assert switch.stop()[0] == 0
    assert not flags() & IFF_PROMISC


@pytest.mark.usefixtures("fleet")
def test_a_frame_above_the_mtu_is_counted_and_named(bench: Bench, switch: SwitchProcess) -> None:
    subprocess.run(["ip", "link", "set", bench.there[2], "mtu", "600"], check=True)
    bench.wires[1].send(frame(bytes(700)))
    bench.wires[1].send(frame(b"small"))
    assert bench.wires[2].receive() == frame(b"small")
    line = switch.await_line("dropped 1 frames above the MTU of")
    assert "Port 2" in line
    assert f"ip link set {bench.there[2]} mtu" in line


@pytest.mark.usefixtures("fleet")
def test_a_frame_too_long_for_the_ring_is_counted_and_named(
    bench: Bench, switch: SwitchProcess
) -> None:
    for name in (bench.here[1], bench.there[1]):
        subprocess.run(["ip", "link", "set", name, "mtu", "9000"], check=True)
    bench.wires[1].send(frame(bytes(5000)))
    bench.wires[1].send(frame(b"small"))
    assert bench.wires[2].receive() == frame(b"small")
    assert "tso off" in switch.await_line("dropped 1 frames too long to be received")


def test_checksums_left_to_hardware_are_completed(bench: Bench) -> None:
    subprocess.run(
        ["ip", "link", "add", bench.here[1], "type", "veth", "peer", "name", bench.there[1]],
        check=True,
    )
    for name in (bench.here[1], bench.there[1]):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    subprocess.run(["ip", "address", "add", "198.18.77.1/30", "dev", bench.here[1]], check=True)
    neighbour = ["198.18.77.2", "lladdr", "02:00:00:00:00:01", "dev", bench.here[1]]
    subprocess.run(["ip", "neighbour", "add", *neighbour], check=True)
    bench.wires[1] = Wire(bench.here[1])
    bench.link(2)
    bench.list_ports(1, 2)
    with bench.start() as switch:
        address = SwitchAddress("s", switch.address, 1)
        with connect_blocking([address], Program.fresh(probe()), election_id=1) as fleet:
            fleet.push()
            forward(fleet, DST, 2)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"odd", ("198.18.77.2", 4000))
            got = Ether(bench.wires[2].receive() or b"")
        line = switch.await_line("leave UDP and TCP checksums to hardware")
        assert "[W]" in line  # without a log, warnings go to stderr
    wanted = Ether(bytes(got))
    del wanted[UDP].chksum
    assert got[UDP].chksum == Ether(bytes(wanted))[UDP].chksum
    assert (got[IP].dst, bytes(got[UDP].payload)) == ("198.18.77.2", b"odd")


def test_ports_are_recorded(bench: Bench) -> None:
    bench.link(1)
    bench.link(2)
    bench.list_ports(1, 2)
    with bench.start("--pcap", str(bench.directory)) as switch:
        address = SwitchAddress("s", switch.address, 1)
        with connect_blocking([address], Program.fresh(probe()), election_id=1) as fleet:
            fleet.push()
            forward(fleet, DST, 2)
            bench.wires[1].send(frame(b"one"))
            assert bench.wires[2].receive() == frame(b"one")
        recorded = {
            (port, way): [
                bytes(packet)
                for packet in rdpcap(str(bench.directory / f"{bench.there[port]}_{way}.pcap"))
            ]
            for port in (1, 2)
            for way in ("in", "out")
        }
    assert recorded == {
        (1, "in"): [frame(b"one")],
        (1, "out"): [],
        (2, "in"): [],
        (2, "out"): [frame(b"one")],
    }


def test_ports_come_and_go_while_it_runs(
    bench: Bench, switch: SwitchProcess, fleet: BlockingFleet
) -> None:
    bench.link(3)
    forward(fleet, OTHER_DST, 3)
    bench.wires[1].send(frame(dst=OTHER_DST))
    assert "packets to it are dropped" in switch.await_line("Port 3 has no interface")
    bench.list_ports(1, 3)
    switch.process.send_signal(signal.SIGHUP)
    switch.await_line("Ports are as wanted")
    bench.wires[1].send(frame(dst=OTHER_DST))
    assert bench.wires[3].receive() == frame(dst=OTHER_DST)
    bench.wires[1].send(frame())
    bench.wires[1].send(frame(b"last", dst=OTHER_DST))
    assert bench.wires[3].receive() == frame(b"last", dst=OTHER_DST)
    assert bench.wires[2].receive(0.0) is None


@pytest.mark.usefixtures("fleet")
def test_a_file_of_ports_that_is_wrong_changes_nothing(bench: Bench, switch: SwitchProcess) -> None:
    bench.ports.write_text(f"1@{bench.there[1]}\nnonsense\n")
    switch.process.send_signal(signal.SIGHUP)
    assert "line 2: 'nonsense'" in switch.await_line("Ports are not all as wanted")
    bench.wires[1].send(frame())
    assert bench.wires[2].receive() == frame()


@pytest.mark.usefixtures("fleet")
def test_an_interface_may_vanish_and_come_back(bench: Bench, switch: SwitchProcess) -> None:
    bench.unlink(2)
    switch.await_line(f"interface {bench.there[2]} is gone")
    bench.wires[1].send(frame())  # nowhere to go, and nothing breaks
    bench.link(2)
    switch.process.send_signal(signal.SIGHUP)
    switch.await_line("Ports are as wanted")
    bench.wires[1].send(frame(b"again"))
    assert bench.wires[2].receive() == frame(b"again")


@pytest.mark.usefixtures("fleet")
def test_an_interface_that_is_down_takes_nothing_and_says_so(
    bench: Bench, switch: SwitchProcess
) -> None:
    subprocess.run(["ip", "link", "set", bench.there[2], "down"], check=True)
    switch.await_line(f"interface {bench.there[2]} went down")
    bench.wires[1].send(frame())
    switch.await_line("that the interface did not take")
    subprocess.run(["ip", "link", "set", bench.there[2], "up"], check=True)

    def arrives() -> bytes | None:
        bench.wires[1].send(frame(b"up"))
        return bench.wires[2].receive(0.1)

    assert wait_for(arrives, switch.evidence) == frame(b"up")


def test_it_ends_within_a_second_while_a_controller_is_connected(
    switch: SwitchProcess, fleet: BlockingFleet
) -> None:
    code, seconds = switch.stop()
    assert code == 0
    assert seconds < 1


def test_a_program_on_the_command_line_runs_without_a_controller(bench: Bench) -> None:
    bench.link(1)
    with SwitchProcess(
        bench.directory,
        *("-i", f"1@{bench.there[1]}", str(PROGRAMS / "state.json")),
        *("--", "--grpc-server-addr", f"127.0.0.1:{free_port()}"),
    ):
        packet = bytes([99, *bytes(59)])
        bench.wires[1].send(packet)
        assert bench.wires[1].receive() == packet
