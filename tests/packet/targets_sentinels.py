"""How to get a sentinel through the programs that packet tests run."""

from __future__ import annotations

from pathlib import Path

from controller.program import TableEntry
from p4src.artefacts import Artefacts
from tests.packet.targets import PORTS, Sentinel

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"

_SENTINEL_MAC = 0x02_5E_00_00_00_00
_SENTINEL_NET = 0xC6_33_64_00  # 198.51.100.0/24, for documentation: no test network uses it
_IPV4_HEADER = 20


def probe() -> Artefacts:
    """Return the program of tests/programs/probe.p4, compiled."""
    return Artefacts(
        json=(PROGRAMS / "probe.json").read_bytes(),
        p4info=(PROGRAMS / "probe.p4info.txtpb").read_text(encoding="utf-8"),
    )


def probe_sentinel() -> Sentinel:
    """Sentinels of the probe program: Ethernet to an address per port, by its LPM table."""
    return Sentinel(
        tuple(
            TableEntry.of(
                "routes", {"dst_addr": (_SENTINEL_MAC + port, 48)}, "to_port", {"port": port}
            )
            for port in PORTS
        ),
        lambda port, tag: _ethernet(_SENTINEL_MAC + port, 0x88B5) + tag,
    )


def control() -> Artefacts:
    """Return the program of tests/programs/control.p4, compiled."""
    return Artefacts(
        json=(PROGRAMS / "control.json").read_bytes(),
        p4info=(PROGRAMS / "control.p4info.txtpb").read_text(encoding="utf-8"),
    )


def control_sentinel() -> Sentinel:
    """Sentinels of the control program: as those of the probe, by its LPM table."""
    return probe_sentinel()


def bluetree_sentinel() -> Sentinel:
    """Sentinels of the shipped program: IPv4 to an address per port, by its ordinary routes.

    They count among its outcomes, as routed packets.
    """
    return Sentinel(
        tuple(
            TableEntry.of(
                "ipv4_routes",
                {"dst_addr": (_SENTINEL_NET + port, 32)},
                "route",
                {"port": port, "mac": _SENTINEL_MAC + port},
            )
            for port in PORTS
        ),
        lambda port, tag: _ethernet(_SENTINEL_MAC, 0x0800) + _ipv4(_SENTINEL_NET + port, tag),
    )


def _ethernet(dst: int, ether_type: int) -> bytes:
    return dst.to_bytes(6, "big") + bytes.fromhex("025eff000000") + ether_type.to_bytes(2, "big")


def _ipv4(dst: int, payload: bytes) -> bytes:
    """Return an IPv4 packet of protocol 253 (for experiments, RFC 3692) with the right checksum."""
    length = _IPV4_HEADER + len(payload)
    header = bytearray(_IPV4_HEADER)
    header[0] = 0x45
    header[2:4] = length.to_bytes(2, "big")
    header[8] = 64
    header[9] = 253
    header[12:16] = (_SENTINEL_NET + 254).to_bytes(4, "big")
    header[16:20] = dst.to_bytes(4, "big")
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, _IPV4_HEADER, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(header) + payload
