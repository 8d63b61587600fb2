"""Packets from files and to files, and the drop port: the same on softswitch and on bmv2.

The program is tests/programs/copies.p4; its packets name the port that they leave by.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from softswitch.ports.capture import Capture, read_frames
from softswitch.ports.errors import PortError
from tests.packet.switch_process import COMMAND, DEADLINE_S, run, wait_for
from tests.packet.targets_process import Bmv2Target, free_port, why_not
from tests.packet.targets_sentinels import PROGRAMS

HEAD = 24
"""Bytes of a pcap file without packets."""

UNICAST, DROP, DROP_IN_EGRESS = 0, 1, 13
IN_X = [(1, UNICAST, 2), (3, UNICAST, 2), (4, DROP, 2)]
IN_Y = [(2, UNICAST, 2), (4, UNICAST, 511), (5, DROP_IN_EGRESS, 2), (6, UNICAST, 1)]
ELSEWHERE = ("--drop-port", "7")
"""With it 511 is a port like any other."""


def order(at: int, code: int, port: int) -> bytes:
    """A packet that the program sends out of `port`; its time is in it, too."""
    return bytes([code, 0]) + port.to_bytes(2) + bytes(7) + bytes([at]) * 50


def recording(packets: Iterable[tuple[int, int, int]]) -> bytes:
    """A pcap file of packets at these seconds."""
    data = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    for at, code, port in packets:
        frame = order(at, code, port)
        data += struct.pack("=IIII", at, 0, len(frame), len(frame)) + frame
    return data


def frames(path: Path) -> list[bytes]:
    return [frame for _, frame in read_frames(path)]


def replayed(command: str, directory: Path, *options: str) -> dict[str, list[int]]:
    """Run the files through a switch; by port the times of what left."""
    (directory / "X_in.pcap").write_bytes(recording(IN_X))
    (directory / "Y_in.pcap").write_bytes(recording(IN_Y))
    (directory / "Z_in.pcap").write_bytes(recording([]))
    grpc = free_port()
    words = [
        *(command, str(PROGRAMS / "copies.json"), "-i", "1@X", "-i", "2@Y", "--use-files", "1"),
        *(("-i", "511@Z") if options else ()),
        *("--device-id", str(os.getpid()), "--thrift-port", str(free_port(grpc + 1))),
        *("--", "--grpc-server-addr", f"127.0.0.1:{grpc}", *options),
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=directory, stdout=log, stderr=log)
    try:
        # the last packet leaves by X
        out = directory / "X_out.pcap"
        wait_for(
            lambda: True if out.exists() and out.stat().st_size > HEAD else None,
            (directory / "log").read_text,
        )
    finally:
        process.terminate()
        process.wait(DEADLINE_S)
    return {
        path.name[0]: [frame[-1] for frame in frames(path)]
        for path in sorted(directory.glob("*_out.pcap"))
    }


def test_files_come_in_by_time_and_go_out(tmp_path: Path) -> None:
    assert replayed(COMMAND, tmp_path) == {"X": [6], "Y": [1, 2, 3]}


def test_another_drop_port(tmp_path: Path) -> None:
    assert replayed(COMMAND, tmp_path, *ELSEWHERE) == {"X": [6], "Y": [1, 2, 3], "Z": [4]}


@pytest.mark.bmv2
@pytest.mark.skipif(
    why_not(Bmv2Target.command) is not None, reason=str(why_not(Bmv2Target.command))
)
@pytest.mark.parametrize("options", [(), ELSEWHERE], ids=["511", "7"])
def test_bmv2_does_the_same(tmp_path: Path, options: tuple[str, ...]) -> None:
    left = replayed(Bmv2Target.command, tmp_path, *options)
    assert left == {"X": [6], "Y": [1, 2, 3]} | ({"Z": [4]} if options else {})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = run("--no-p4", "-i", f"1@{tmp_path.name[:10]}", "--use-files", "0")
    assert result.returncode == 3
    assert result.stderr.startswith(
        f"softswitch: cannot read {tmp_path.name[:10]}_in.pcap: No such"
    )


@pytest.mark.parametrize("order_of_bytes", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_recordings_of_any_machine_are_read(
    tmp_path: Path, order_of_bytes: str, magic: int, unit: int
) -> None:
    data = struct.pack(f"{order_of_bytes}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    for frame in (b"one", b"three"):
        data += struct.pack(f"{order_of_bytes}IIII", 5, 7, len(frame), 1500) + frame
    (tmp_path / "x").write_bytes(data + b"cut")
    found = list(read_frames(tmp_path / "x"))
    assert found == [(5 * 10**9 + 7 * unit, b"one"), (5 * 10**9 + 7 * unit, b"three")]


def test_what_is_recorded_is_read(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "x")
    capture.record(b"frame")
    capture.close()
    assert frames(tmp_path / "x") == [b"frame"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no pcap file"),
        (bytes.fromhex("0a0d0d0a") + bytes(40), "pcapng is not read"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 113), "no recording of Ethernet"),
    ],
)
def test_what_is_no_recording_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(PortError, match=words):
        list(read_frames(tmp_path / "x"))
