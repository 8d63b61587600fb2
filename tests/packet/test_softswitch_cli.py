"""The command line of `softswitch`: what it takes, what it refuses, how it says so."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tests.packet.switch_process import DEADLINE_S, SwitchProcess, run
from tests.packet.targets_process import free_port
from tests.packet.targets_sentinels import PROGRAMS

PROBE = str(PROGRAMS / "probe.json")


def test_help_names_every_option_of_simple_switch_grpc() -> None:
    result = run("--help")
    assert result.returncode == 0
    for option in (
        "-i PORT@NAME",
        "--device-id",
        "--no-p4",
        "--pcap",
        "--log-console",
        "--log-file",
        "-L LEVEL",
        "--thrift-port",
        "--nanolog",
        "--dump-packet-data",
        "--grpc-server-addr",
        "--grpc-server-ssl",
        "--grpc-server-cacert",
        "--grpc-server-cert",
        "--grpc-server-key",
        "--grpc-server-with-client-auth",
        "--cpu-port",
        "--drop-port",
        "--priority-queues",
        "--queue-rate",
        "--backend",
        "--queue-depth",
        "--max-mc-groups",
    ):
        assert option in result.stdout


def test_versions() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", run("--version").stdout)
    assert re.fullmatch(r"2\.\d+\n", run("--json-version").stdout)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give a program in JSON, or --no-p4"),
        (["--no-p4", "--colour"], "unrecognized arguments: --colour"),
        (["--no-p4", "-i", "veth0"], "'veth0' is no port: write <port-num>@<interface-name>"),
        (["--no-p4", "-i", "512@veth0"], "port 512 of '512@veth0' is outside 0..511"),
        (["--no-p4", "-i", "511@veth0"], "port 511 drops; choose another, or --drop-port"),
        (["--no-p4", "-i", "1@a_name_too_long_"], "names have at most 15 characters"),
        (["--no-p4", "-i", "1@x", "-i", "1@y"], "port 1 is given twice: 1@x and 1@y"),
        (["--no-p4", "-i", "1@x", "-i", "2@x"], "interface x is given twice: 1@x and 2@x"),
        (["--no-p4", "-L", "loud"], "invalid choice: 'loud'"),
        (["--no-p4", "--", "--cpu-port", "0"], "--cpu-port 0 is outside 1..511"),
        (["--no-p4", "--", "--cpu-port", "511"], "--cpu-port 511 is the port that drops"),
        (["--no-p4", "-i", "5@x", "--", "--cpu-port", "5"], "port 5 is the CPU port"),
        (["--no-p4", "--", "--drop-port", "512"], "--drop-port 512 is outside 0..511"),
        (["--no-p4", "--", "--priority-queues", "0"], "at least one queue"),
        (["--no-p4", "--", "--priority-queues", "1025"], "a port has at most 1024 queues"),
        (["--no-p4", "--", "--priority-queues", "many"], "'many' is not a whole number"),
        (["--no-p4", "--device-id", str(1 << 64)], "--device-id 18446744073709551616 is outside"),
        (["--no-p4", "--thrift-port", "65536"], "--thrift-port 65536 is outside 0..65535"),
        (["--no-p4", "--grpc-server-addr", "127.0.0.1"], "127.0.0.1: write HOST:PORT, as"),
        (["--no-p4", "--grpc-server-addr", ":9559"], ":9559: write HOST:PORT, as"),
        (["--no-p4", "--grpc-server-addr", "::1:9559"], "::1:9559: write HOST:PORT, as"),
        (["--no-p4", "--grpc-server-addr", "[::1]:65536"], "TCP ports are 0..65535"),
        (["--no-p4", "--queue-rate", "fast"], "'fast' is no queue rate: write [PORT:[QUEUE:]]N"),
        (["--no-p4", "--queue-depth", "1:1:8"], "there is no queue 1: a port has queues 0..0"),
        (["--no-p4", "--queue-depth", "512:8"], "port 512 of a queue depth is outside 0..511"),
        (["--no-p4", "--queue-commands", "/nowhere"], "cannot read the queues of /nowhere"),
        (["--no-p4", "--", "--grpc-server-ssl"], "--grpc-server-ssl needs --grpc-server-cert"),
        (["--no-p4", "--", "--grpc-server-cert", "x"], "certificates without TLS"),
        (
            ["--no-p4", "--restore-state", "x"],
            "--restore-state of bmv2 is not served: state is not",
        ),
        (["--no-p4", "--", "--load-modules", "x.so"], "--load-modules of bmv2 is not served"),
        (["--no-p4", "--packet-in", "x"], "--packet-in of bmv2 is not served"),
        (["--no-p4", "--", "--dp-grpc-server-addr", "x"], "--dp-grpc-server-addr of bmv2 is not"),
        (["--no-p4", "--debugger"], "--debugger of bmv2 is not served"),
        (["--no-p4", "--log-console", "--log-file", "x"], "exclude each other"),
        (["--no-p4", "--pcap=/nowhere"], "there is no directory /nowhere"),
        (["--no-p4", "--ports", "/nowhere"], "cannot read the ports of /nowhere"),
        (["/nowhere.json"], "/nowhere.json cannot be read"),
    ],
)
def test_bad_usage_gets_one_line(arguments: list[str], text: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("softswitch: ")
    assert text in line


def test_a_program_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    result = run(str(tmp_path / "bad.json"))
    assert result.returncode == 2
    assert "bad.json does not run here" in result.stderr


def test_every_bad_line_of_a_file_of_ports_is_named(tmp_path: Path) -> None:
    ports = tmp_path / "ports"
    ports.write_text("# ports\n1@veth1  # good\n\nveth2\n3@\n")
    result = run("--no-p4", "--ports", str(ports))
    assert result.returncode == 2
    assert "line 4: 'veth2'" in result.stderr
    assert "line 5: '3@'" in result.stderr


def test_an_interface_that_is_not_there() -> None:
    result = run("--no-p4", "-i", "1@nosuch0")
    assert result.returncode == 3
    assert result.stderr.startswith("softswitch: there is no interface nosuch0: make it first")
    assert len(result.stderr.splitlines()) == 1


def test_an_address_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("--no-p4", "--", "--grpc-server-addr", address)
    assert result.returncode == 3
    assert result.stderr.startswith(f"softswitch: cannot listen on {address}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["v6", "file"])
def test_it_says_where_it_listens(tmp_path: Path, kind: str) -> None:
    if kind == "v6" and not socket.has_dualstack_ipv6():
        pytest.skip(
            "this machine has no IPv6: only addresses of IPv4 and of files were listened on"
        )
    address = f"[::1]:{free_port()}" if kind == "v6" else f"unix:{tmp_path}/grpc"
    with SwitchProcess(tmp_path, "--no-p4", "--", "--grpc-server-addr", address) as switch:
        assert switch.address == address
        with grpc.insecure_channel(address) as channel:
            reply = p4r_grpc.P4RuntimeStub(channel).Capabilities(
                p4r.CapabilitiesRequest(), timeout=DEADLINE_S
            )
        assert reply.p4runtime_api_version
        switch.stop()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_on_a_signal(tmp_path: Path, how: signal.Signals) -> None:
    address = f"127.0.0.1:{free_port()}"
    with SwitchProcess(
        tmp_path, PROBE, "--device-id", "3", "--", "--grpc-server-addr", address
    ) as switch:
        assert switch.address == address
        code, seconds = switch.stop(how)
    assert code == 0
    assert seconds < 1


def test_options_without_effect_are_noted(tmp_path: Path) -> None:
    with SwitchProcess(
        tmp_path,
        "--no-p4",
        *("--nanolog", "ipc:///tmp/x", "--log-flush", "--log-file-max-size", "9"),
        *("--", "--disable-swap", "--max-mc-groups", "9"),
        *("--grpc-server-addr", f"127.0.0.1:{free_port()}"),
    ) as switch:
        noted = [line for line in switch.lines() if line.startswith("Note: ")]
        assert [line.removeprefix("Note: ").partition(":")[0] for line in noted] == [
            "Ignoring --log-flush option because --log-file not specified",
            "Ignoring --log-file-max-size option because --log-file not specified",
            "--nanolog has no effect",
            "--max-mc-groups has no effect",
        ]
        switch.stop()


def test_a_log_file_gets_the_name_that_bmv2_gives_it(tmp_path: Path) -> None:
    with SwitchProcess(
        tmp_path,
        *("--no-p4", "--log-file", str(tmp_path / "switch"), "--log-level", "debug"),
        *("--", "--grpc-server-addr", f"127.0.0.1:{free_port()}"),
    ) as switch:
        switch.stop()
    assert (tmp_path / "switch.txt").exists()


def test_full_log_files_are_kept_under_the_names_of_bmv2(tmp_path: Path) -> None:
    with SwitchProcess(
        tmp_path,
        *("--no-p4", "--log-file", str(tmp_path / "switch"), "--log-file-max-size", "100"),
        *("--log-file-max-files", "2", "--log-flush", "--thrift-port", str(free_port())),
        *("--", "--grpc-server-addr", f"127.0.0.1:{free_port(20000)}"),
    ) as switch:
        switch.stop()
    kept = sorted(path.name for path in tmp_path.glob("switch*"))
    assert kept == ["switch.1.txt", "switch.txt"]


def test_python_dash_m_is_the_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "softswitch", "--json-version"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert result.stdout == run("--json-version").stdout


def test_a_back_end_that_cannot_be_had_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meters = str(PROGRAMS / "state.json")
    result = run(meters, "--backend", "native")
    assert result.returncode == 2
    assert re.fullmatch(r"softswitch: .*state.json does not run here: .*meter.*\n", result.stderr)
    monkeypatch.setenv("PATH", "/nonexistent")
    result = run("--no-p4", "--backend", "native")
    assert (result.returncode, result.stdout.count("\n")) == (2, 1)
    assert "--backend native: no C compiler is installed" in result.stderr
    monkeypatch.setenv("SOFTSWITCH_BACKEND", "jit")
    assert "no back end is named 'jit'" in run("--no-p4").stderr
