"""Names and integers to messages and back, on the probe program and on the shipped one."""

from __future__ import annotations

import dataclasses

import pytest

from controller.p4rt import Schema, SchemaError
from controller.program import CloneSession, MulticastGroup, Op, TableEntry, Update
from p4src import artefacts
from tests.packet.targets_sentinels import probe


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema(probe())


def acl(**match: int | tuple[int, int]) -> TableEntry:
    return TableEntry.of("acl", match, "drop", priority=1)


def test_full_names_and_aliases_mean_the_same(schema: Schema) -> None:
    short = TableEntry.of("forward", {"dst_addr": 1}, "to_port", {"port": 2})
    full = TableEntry.of(
        "ProbeIngress.forward", {"dst_addr": 1}, "ProbeIngress.to_port", {"port": 2}
    )
    assert schema.entity(short) == schema.entity(full)
    assert schema.canonical(full) == short


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (acl(src_addr=5), acl(src_addr=(5, (1 << 48) - 1))),
        (acl(src_addr=(4, 12)), acl(src_addr=(4, 12))),
        (acl(src_addr=(0, 0)), acl()),
        (acl(ether_type=7), acl(ether_type=(7, 7))),
        (acl(ether_type=(0, 0xFFFF)), acl()),
        (acl(ingress_port=(3, 511)), acl(ingress_port=3)),
        (acl(ingress_port=(0, 0)), acl()),
    ],
)
def test_the_canonical_form_is_what_a_switch_gives_back(
    schema: Schema, written: TableEntry, read: TableEntry
) -> None:
    assert schema.canonical(written) == read
    assert schema.value(schema.entity(written)) == read


def test_lpm_values_lose_the_bits_behind_the_prefix(schema: Schema) -> None:
    written = TableEntry.of("routes", {"dst_addr": ((1 << 47) + 1, 1)}, "drop")
    read = TableEntry.of("routes", {"dst_addr": (1 << 47, 1)}, "drop")
    assert schema.canonical(written) == read
    assert schema.canonical(TableEntry.of("routes", {"dst_addr": (9, 0)}, "drop")).match == ()


def test_groups_and_sessions_survive(schema: Schema) -> None:
    for value in (MulticastGroup(3, ((1, 0), (2, 5))), CloneSession(4, ((9, 1),), 64)):
        assert schema.value(schema.entity(value)) == value


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (TableEntry.of("forwrd", {}, "drop"), "no P4Table named 'forwrd'. Did you mean 'forward'"),
        (TableEntry.of("forward", {"dst": 1}, "drop"), "'dst'. Did you mean 'dst_addr'"),
        (TableEntry.of("forward", {}, "drop"), "field dst_addr is exact and has to be given"),
        (TableEntry.of("forward", {"dst_addr": (1, 2)}, "drop"), "is exact: give one integer"),
        (
            TableEntry.of("forward", {"dst_addr": 1 << 48}, "drop"),
            "field dst_addr: 281474976710656 does not fit its 48",
        ),
        (
            TableEntry.of("forward", {"dst_addr": 1}, "permit"),
            "no table action named 'permit'. Did you mean 'drop'",
        ),
        (TableEntry.of("forward", {"dst_addr": 1}, "to_port"), r"takes .*\['port'\], not \[\]"),
        (
            TableEntry.of("forward", {"dst_addr": 1}, "to_port", {"port": 512}),
            "parameter port: 512 does not fit its 9 bits",
        ),
        (acl(src_addr=(3, 1)), "0x3 has bits outside mask 0x1"),
        (acl(ether_type=(3, 1)), "the range 3..1 is empty"),
        (acl(ingress_port=(3, 7)), "an optional match has mask 0 or 0x1ff"),
    ],
)
def test_what_the_program_lacks_is_named(schema: Schema, entry: TableEntry, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        schema.update(Update(Op.INSERT, entry))
    assert str(entry) in str(caught.value)


def test_a_p4info_that_is_none_is_refused() -> None:
    with pytest.raises(SchemaError, match="the P4Info is not usable"):
        Schema(dataclasses.replace(probe(), p4info="tables { nonsense"))


def test_every_table_of_the_shipped_program_can_be_named() -> None:
    schema = Schema(artefacts.load())
    entry = TableEntry.of(
        "blue_sources",
        {"ingress_port": 1, "job": 2, "epoch": 3, "source": 4},
        "join",
        {
            "source_bit": 1 << 2047,
            "all_sources": (1 << 2048) - 1,
            "weight": 1,
            "slot_base": 64,
            "slot_mask": 63,
            "own_source": 9,
        },
    )
    assert schema.canonical(entry) == entry
