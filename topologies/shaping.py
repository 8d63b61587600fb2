"""Links at the rates of a tree, shaped by the kernel's hierarchical token bucket (tc htb). Pure.

A base, in bits a second, is what rate 1 of a tree stands for: a link of rate w carries w x base.
Links outside the overlay have rate 1. The model gives no rate to the link of a worker, which
carries one message a chunk whatever is blue: it has the largest rate of the tree, and so is never
the most congested link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from topologies.network import Network
from topologies.topology import Topology

MIN_BPS = 8_000
"""Slowest shaped link: a frame of 1,514 bytes takes 1.5 s on it."""
MAX_BPS = 8 * (2**32 - 1)
"""Fastest shaped link, 34 Gbit/s: htb's own rates are 32 bits of bytes a second."""
FRAME_BYTES = 1_514
_BURST_SECONDS = Fraction(1, 20_000)
"""What a bucket saves up: little, so that short runs feel the rate as well."""
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:bit(?:/s)?|bps)?", re.IGNORECASE)


class ShapingError(ValueError):
    """A rate cannot be read or kept; the text names the link and the remedy."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An interface and the rate, in bits a second, of what leaves through it."""

    interface: str
    bps: int


def parse_rate(text: str) -> int:
    """Bits a second of "100M", "1.5Gbit", "64k" or "2500000"; raises ShapingError."""
    found = _RATE.fullmatch(text.strip())
    bits = Fraction(found[1]) * _UNITS[found[2].lower()] if found else Fraction(0)
    if bits < 1:
        raise ShapingError(f"{text!r} is no rate: write bits a second, such as 100M, 1.5G or 64k")
    return int(bits)


def scaled(rate: Fraction, base: int) -> int:
    """Bits a second of a link of that rate, rounded down to whole ones."""
    return int(rate * base)


def fastest(topology: Topology, base: int) -> int:
    """Bits a second of a worker's link."""
    return scaled(max(topology.overlay.tree.rate), base)


def check_rates(topology: Topology, base: int) -> None:
    """Raise ShapingError, naming the link, unless htb holds every rate of the topology."""
    names, tree = topology.overlay.names, topology.overlay.tree
    for name, parent, rate in zip(names, tree.parent, tree.rate, strict=True):
        bps = scaled(rate, base)
        if not MIN_BPS <= bps <= MAX_BPS:
            above = "destination" if parent < 0 else names[parent]
            raise ShapingError(
                f"link {name} -> {above} of rate {rate} would carry {bps:,} bit/s; the kernel "
                f"shapes links from {MIN_BPS:,} to {MAX_BPS:,} bit/s, so choose another base"
            )
    if not MIN_BPS <= base <= MAX_BPS and len(topology.links) >= len(names):
        raise ShapingError(
            f"links outside the tree would carry {base:,} bit/s; the kernel shapes links from "
            f"{MIN_BPS:,} to {MAX_BPS:,} bit/s, so choose another base"
        )


def host_rate(network: Network, host: str, base: int) -> int:
    """Bits a second of a host's link: the root's for a destination, else a worker's."""
    topology = network.topology
    if host in {one.name for one in (network.destination, *network.spares)}:
        return scaled(topology.overlay.tree.rate[0], base)
    return fastest(topology, base)


def tc_commands(shapes: Iterable[Shape]) -> Iterator[str]:
    """Lines for `tc -batch` that give each interface its rate."""
    for shape in shapes:
        burst = max(FRAME_BYTES + 86, int(shape.bps * _BURST_SECONDS / 8))
        rate = f"rate {shape.bps}bit burst {burst} cburst {burst} quantum {FRAME_BYTES}"
        yield f"qdisc add dev {shape.interface} root handle 1: htb default 1"
        yield f"class add dev {shape.interface} parent 1: classid 1:1 htb {rate}"
