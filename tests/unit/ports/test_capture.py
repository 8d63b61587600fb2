"""Recordings are pcap files that others read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from softswitch.ports.capture import Capture
from softswitch.ports.errors import PortError


def test_every_frame_is_on_disk_at_once_under_its_time(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    capture = Capture(path)
    before = time.time()
    for frame in (b"a" * 60, b"b" * 1514):
        capture.record(frame)
    with RawPcapReader(str(path)) as reader:
        assert reader.linktype == 1
        read = list(reader)
    capture.close()
    assert [data for data, _ in read] == [b"a" * 60, b"b" * 1514]
    for _, meta in read:
        assert before - 0.001 <= meta.sec + meta.usec / 1e6 <= time.time()
        assert meta.wirelen == meta.caplen


def test_a_file_that_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(PortError, match="cannot record to"):
        Capture(tmp_path / "no" / "x.pcap")
