"""Rates of shaped links: what is read, what a link of a tree gets, what the kernel cannot hold."""

from __future__ import annotations

from fractions import Fraction

import pytest

from controller.placement import Tree
from tests.unit.controller.trees import topology_of
from topologies.network import wire
from topologies.shaping import (
    MAX_BPS,
    MIN_BPS,
    Shape,
    ShapingError,
    check_rates,
    host_rate,
    parse_rate,
    scaled,
    tc_commands,
)

TREE = Tree(
    parent=[-1, 0, 0],
    rate=[Fraction(2), Fraction(1, 3), Fraction(5)],
    load=[0, 1, 2],
    available=[True] * 3,
)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("100M", 100_000_000),
        ("1.5G", 1_500_000_000),
        ("64k", 64_000),
        ("64Kbit", 64_000),
        ("10 Mbit/s", 10_000_000),
        ("2500000", 2_500_000),
        (" 1g ", 1_000_000_000),
    ],
)
def test_reads_rates(text: str, bits: int) -> None:
    assert parse_rate(text) == bits


@pytest.mark.parametrize("text", ["", "M", "fast", "-1M", "0", "0.1", "1T", "1/2M", "1e6", "nan"])
def test_refuses_what_is_no_rate(text: str) -> None:
    with pytest.raises(ShapingError, match="is no rate"):
        parse_rate(text)


def test_links_keep_their_ratio() -> None:
    assert [scaled(rate, 9_000_000) for rate in TREE.rate] == [18_000_000, 3_000_000, 45_000_000]


def test_hosts_are_never_the_most_congested() -> None:
    network = wire(topology_of(TREE))
    assert host_rate(network, network.destination.name, 1_000_000) == 2_000_000
    assert {host_rate(network, host.name, 1_000_000) for host in network.workers} == {5_000_000}


@pytest.mark.parametrize(
    ("base", "link"),
    [(3 * MIN_BPS - 1, "s1 -> s0"), (MAX_BPS // 5 + 1, "s2 -> s0"), (MAX_BPS, "s0 -> destination")],
)
def test_names_the_link_that_the_kernel_cannot_hold(base: int, link: str) -> None:
    with pytest.raises(ShapingError, match=link):
        check_rates(topology_of(TREE), base)


@pytest.mark.parametrize("base", [3 * MIN_BPS, MAX_BPS // 5])
def test_takes_what_the_kernel_holds(base: int) -> None:
    check_rates(topology_of(TREE), base)


def test_says_it_in_words_of_tc() -> None:
    assert list(tc_commands([Shape("x-1", 1_000_000)])) == [
        "qdisc add dev x-1 root handle 1: htb default 1",
        "class add dev x-1 parent 1: classid 1:1 htb rate 1000000bit burst 1600 cburst 1600 "
        "quantum 1514",
    ]
