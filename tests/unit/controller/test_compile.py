"""Placements compiled into switch programs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.compile import (
    CompileError,
    JobPlan,
    compile_programs,
    destination_sources,
    epoch_entries,
    heard_sources,
    sent_sources,
    share_slots,
)
from controller.endpoints import job_sources
from controller.placement import Tree, loads
from controller.program import TableEntry
from p4src.constants import SLOTS, SOURCES
from tests.unit.controller.trees import topology_of, trees, trees_with_blue
from topologies.network import Network, wire


def _walk(network: Network, entries: dict[str, list[TableEntry]], start: str, ip: int) -> str:
    """Follow the routes from a switch until they leave for a host; returns the host's name."""
    at = start
    for _ in range(len(network.topology.switches) + 1):
        routes = [dict(entry.params) | {"match": entry.match} for entry in entries[at]]
        best = max((_prefix_length(route["match"], ip), i) for i, route in enumerate(routes))
        assert best[0] >= 0, f"{at} has no route"
        port = routes[best[1]]["port"]
        for host in (*network.workers, network.destination):
            if (host.switch, host.port) == (at, port):
                return host.name
        at = next(
            there
            for link in network.links
            for here, here_port, there in (
                (link.lower, link.lower_port, link.upper),
                (link.upper, link.upper_port, link.lower),
            )
            if (here, here_port) == (at, port)
        )
    raise AssertionError("a routing loop")


def _prefix_length(match: object, ip: int) -> int:
    if match == ():
        return 0
    assert isinstance(match, tuple)
    ((_, (address, length)),) = match
    return length if ip >> (32 - length) == address >> (32 - length) else -1


@given(case=trees_with_blue())
def test_sources_sent_are_the_messages_of_the_model(case: tuple[Tree, frozenset[int]]) -> None:
    tree, blue = case
    network = wire(topology_of(tree))
    heard = heard_sources(network, blue)
    model = loads(tree, blue)
    for v in range(tree.n):
        sent = sent_sources(network, blue, v, heard[v])
        assert len(sent) == model.messages[v]
        ranks = [rank for source in sent for rank in source.ranks]
        assert len(ranks) == tree.subtree_loads()[v] == len(set(ranks))


@given(case=trees_with_blue())
def test_destination_knows_every_source_as_a_laminar_family(
    case: tuple[Tree, frozenset[int]],
) -> None:
    tree, blue = case
    network = wire(topology_of(tree))
    sources = destination_sources(network, blue)
    assert {host.source: {host.rank} for host in network.workers}.items() <= sources.items()
    sets = list(sources.values())
    for one in sets:
        for other in sets:
            assert one <= other or other <= one or not one & other


@given(tree=trees())
def test_every_host_is_reached_from_every_switch(tree: Tree) -> None:
    network = wire(topology_of(tree))
    programs = compile_programs(network, ())
    entries = {program.name: list(program.entries) for program in programs}
    for start in network.topology.switches:
        for host in (*network.workers, network.destination):
            assert _walk(network, entries, start, host.ip) == host.name


def test_a_blue_switch_knows_its_sources_bits_and_slots() -> None:
    network = wire(topology_of(Tree(parent=[-1, 0, 0], rate=[1] * 3, load=[1, 2, 0])))
    plan = JobPlan(job=7, epoch=3, blue=frozenset({0, 1}), slot_base=64, window=16)
    programs = {program.name: program for program in compile_programs(network, [plan])}
    root = [entry for entry in programs["s0"].entries if entry.table == "blue_sources"]
    own, child = (dict(entry.match) | dict(entry.params) for entry in root)
    assert (own["source"], own["weight"], own["source_bit"]) == (2, 1, 1)
    assert (child["source"], child["weight"], child["source_bit"]) == (3, 2, 2)
    assert own["all_sources"] == child["all_sources"] == 3
    assert (own["slot_base"], own["slot_mask"], own["own_source"]) == (64, 15, 1)
    assert (own["job"], own["epoch"]) == (7, 3)
    # Nothing of the job where no worker is below.
    assert {entry.table for entry in programs["s2"].entries} == {"ipv4_routes"}
    assert programs["s2"].groups == ()
    assert programs["s0"].groups[0].replicas == ((1, 1), (3, 1))


@given(case=trees_with_blue(), data=st.data())
def test_epochs_of_a_job_stand_side_by_side(
    case: tuple[Tree, frozenset[int]], data: st.DataObject
) -> None:
    tree, blue = case
    network = wire(topology_of(tree))
    ranks = range(len(network.workers))
    members = frozenset(data.draw(st.sets(st.sampled_from(ranks)))) if ranks else None
    other = frozenset(data.draw(st.sets(st.integers(0, tree.n - 1))))
    old = JobPlan(job=2, epoch=1, blue=blue, slot_base=8, window=8, members=members)
    new = JobPlan(job=2, epoch=5, blue=other, slot_base=8, window=8, members=members)
    both = compile_programs(network, [old, new])
    for only_old, only_new, program in zip(
        compile_programs(network, [old]), compile_programs(network, [new]), both, strict=True
    ):
        assert set(program.entries) == {*only_old.entries, *only_new.entries}
        assert set(program.groups) == {*only_old.groups, *only_new.groups}
        epochs = [entry for entry in program.entries if entry not in set(only_old.entries)]
        by_epoch = {"blue_sources", "blue_jobs", "branches"}
        assert {entry.table for entry in epochs} <= by_epoch


def test_plans_of_a_job_differ_in_nothing_but_the_allocation() -> None:
    network = wire(topology_of(Tree(parent=[-1], rate=[1], load=[2])))
    old = JobPlan(job=1, epoch=1, blue=frozenset(), slot_base=0, window=8)
    with pytest.raises(CompileError, match="job 1: two plans"):
        compile_programs(network, [old, replace(old, epoch=2, slot_base=8)])


def test_only_members_of_a_job_are_admitted_summed_and_answered() -> None:
    network = wire(topology_of(Tree(parent=[-1, 0, 0], rate=[1] * 3, load=[1, 2, 1])))
    plan = JobPlan(
        job=1, epoch=1, blue=frozenset({0}), slot_base=0, window=8, members=frozenset({0, 2})
    )
    programs = {program.name: program for program in compile_programs(network, [plan])}
    summed = [
        dict(entry.match)["source"]
        for entry in programs["s0"].entries
        if entry.table == "blue_sources"
    ]
    present = [host.source for host in network.workers if host.rank in (0, 2)]
    assert summed == present
    assert {entry.table for entry in programs["s2"].entries} == {"ipv4_routes"}
    assert len(programs["s1"].groups[0].replicas) == 1
    assert set(destination_sources(network, plan.blue, plan.members)) == {1, *present}


def test_a_worker_that_is_left_out_is_summed_no_more_and_belongs_to_the_job_still() -> None:
    network = wire(topology_of(Tree(parent=[-1, 0, 0], rate=[1] * 3, load=[1, 2, 1])))
    plan = JobPlan(job=1, epoch=1, blue=frozenset({0, 1, 2}), slot_base=0, window=8)
    # The worker of s2, and one of the two of s1.
    gone = frozenset({network.workers_at["s2"][0].rank, network.workers_at["s1"][0].rank})
    without = replace(plan, epoch=2, absent=gone)
    added = epoch_entries(network, without)
    assert "s2" not in added
    joins = {
        dict(entry.match)["source"]: dict(entry.params)["weight"]
        for entries in added.values()
        for entry in entries
        if entry.table == "blue_sources"
    }
    left = [host.source for host in network.workers if host.rank not in gone]
    assert joins == {left[0]: 1, left[1]: 1, network.interval[1][0]: 1}
    for old, both in zip(
        compile_programs(network, [plan]), compile_programs(network, [plan, without]), strict=True
    ):
        assert set(both.entries) == {*old.entries, *added.get(both.name, ())}
        assert both.groups == old.groups
    assert set(job_sources(network, without)) == {*left, 1, network.interval[1][0]}


def test_jobs_get_slots_of_their_own() -> None:
    plans = share_slots([frozenset(), frozenset({1})], epoch=1, window=32)
    assert [(plan.job, plan.slot_base, plan.window) for plan in plans] == [(1, 0, 32), (2, 32, 32)]


@pytest.mark.parametrize("window", [0, 3, 100])
def test_a_window_must_be_a_power_of_two(window: int) -> None:
    with pytest.raises(CompileError, match="choose a power of two"):
        share_slots([frozenset()], epoch=1, window=window)


def test_more_slots_than_a_switch_has_are_refused() -> None:
    with pytest.raises(CompileError, match=f"a switch has {SLOTS}"):
        share_slots([frozenset()] * 3, epoch=1, window=2048)


def test_too_many_sources_for_one_blue_switch_names_it() -> None:
    leaves = SOURCES // 400 + 1
    tree = Tree(parent=[-1] + [0] * leaves, rate=[1] * (leaves + 1), load=[0] + [400] * leaves)
    network = wire(topology_of(tree))
    with pytest.raises(CompileError, match=r"s0: would sum 2400 sources"):
        heard_sources(network, frozenset({0}))
