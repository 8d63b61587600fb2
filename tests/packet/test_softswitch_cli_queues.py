"""A `softswitch` process changes while it runs: queues by a file and SIGHUP, ports over Thrift."""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from softswitch.ports.pair import create_pair, delete_pair
from tests.packet.switch_process import SwitchProcess, Wire
from tests.packet.targets_process import free_port, why_not
from tests.packet.targets_sentinels import PROGRAMS
from tests.packet.thrift_client import add_port, remove_port, set_queue_depth

pytestmark = pytest.mark.skipif(
    why_not(sys.executable) is not None, reason=str(why_not(sys.executable))
)

PACKET = bytes([0, 1, 0, 1]) + bytes(60)


@pytest.fixture
def link() -> Iterator[tuple[str, str]]:
    """A veth pair: the test's end and the switch's, port 1, where packets come from and go to."""
    token = secrets.token_hex(3)
    here, there = f"sq{token}h", f"sq{token}s"
    create_pair(here, there)
    try:
        yield here, there
    finally:
        delete_pair(here)


def start(directory: Path, there: str, commands: Path) -> SwitchProcess:
    return SwitchProcess(
        directory,
        *(str(PROGRAMS / "queues.json"), "-i", f"1@{there}", "--log-console", "-L", "debug"),
        *("--queue-depth", "1:1:0", "--queue-commands", str(commands)),
        *("--", "--priority-queues", "2", "--grpc-server-addr", f"127.0.0.1:{free_port()}"),
    )


def test_queues_change_while_the_switch_runs(link: tuple[str, str], tmp_path: Path) -> None:
    here, there = link
    commands = tmp_path / "commands"
    commands.write_text("")
    wire = Wire(here)
    try:
        with start(tmp_path, there, commands) as switch:
            wire.send(PACKET)
            switch.await_line(
                f"[W] [thread {switch.process.pid}] Port 1 ({there}): dropped 1 packets that found "
                "queue 1 full (1 so far): it holds 0 packets and serves at any rate"
            )
            commands.write_text("set_queue_depth 8 1 2\n")
            switch.process.send_signal(signal.SIGHUP)
            switch.await_line("Queues stay as they were: there is no queue 2: a port has queues")
            commands.write_text("set_queue_depth 8 1 1\nset_queue_rate 1000\n")
            switch.process.send_signal(signal.SIGHUP)
            switch.await_line("Queues are as wanted")
            wire.send(PACKET)
            assert wire.receive() == PACKET
            switch.await_line("[queue 1] Transmitting packet of size 64 out of port 1")
            code, _ = switch.stop()
            assert code == 0
    finally:
        wire.close()


def test_ports_and_queues_change_over_thrift(link: tuple[str, str], tmp_path: Path) -> None:
    here, there = link
    wire = Wire(here)
    thrift = free_port()
    try:
        with SwitchProcess(
            tmp_path,
            *(str(PROGRAMS / "queues.json"), "--thrift-port", str(thrift), "--log-console"),
            *("--", "--priority-queues", "2"),
            *("--grpc-server-addr", f"127.0.0.1:{free_port(thrift + 1)}"),
        ) as switch:
            switch.await_line("Thrift server was started")
            assert not add_port(thrift, 2, "nosuch0")
            assert not add_port(thrift, 511, there)
            assert add_port(thrift, 1, there)
            assert not add_port(thrift, 2, there)
            wire.send(PACKET)
            assert wire.receive() == PACKET
            set_queue_depth(thrift, 1, 1, 0)
            # ports and queues that were asked for stay
            switch.process.send_signal(signal.SIGHUP)
            switch.await_line("Ports are as wanted")
            wire.send(PACKET)
            switch.await_line("dropped 1 packets that found queue 1 full")
            assert remove_port(thrift, 1)
            assert not remove_port(thrift, 1)
            code, _ = switch.stop()
            assert code == 0
    finally:
        wire.close()
