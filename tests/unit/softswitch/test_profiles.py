"""Action profiles, selectors and idle timeouts, on tests/programs/profiles.p4."""

import pytest

from softswitch import Device
from softswitch.entries import (
    ActionCall,
    ExactMatch,
    GroupMember,
    GroupRef,
    LpmMatch,
    MemberRef,
    OneShot,
    ProfileGroup,
    ProfileMember,
    TableEntry,
    TernaryMatch,
    WeightedAction,
)
from softswitch.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
)
from softswitch.hashes import crc16
from tests.unit.softswitch.programs import PROGRAMS

WAYS, STAMPS = "IngressPipe.ways", "IngressPipe.stamps"
BALANCED, STAMPED, AGED = "IngressPipe.balanced", "IngressPipe.stamped", "IngressPipe.aged"
TO_PORT, STAMP = "IngressPipe.to_port", "IngressPipe.stamp"
SECOND = 1_000_000


@pytest.fixture
def device() -> Device:
    found = Device()
    found.load_pipeline((PROGRAMS / "profiles.json").read_bytes())
    return found


def packet(kind: int = 1, low: int = 0, flow: int = 0) -> bytes:
    return bytes([kind, low]) + flow.to_bytes(2) + bytes(4)


def add_ways(device: Device, count: int) -> None:
    for number in range(1, count + 1):
        device.insert_member(ProfileMember(WAYS, number, ActionCall(TO_PORT, (number, number))))


def group(number: int, *members: tuple[int, int], max_size: int = 0) -> ProfileGroup:
    shares = tuple(GroupMember(member, weight) for member, weight in members)
    return ProfileGroup(WAYS, number, shares, max_size)


def balanced(kind: int, action: GroupRef | MemberRef | OneShot) -> TableEntry:
    return TableEntry(BALANCED, (ExactMatch(kind),), action)


def port(device: Device, **fields: int) -> list[int]:
    return [p for p, _ in device.process(0, packet(**fields))]


def test_an_entry_runs_its_member_also_after_the_member_changes(device: Device) -> None:
    add_ways(device, 2)
    device.insert_entry(balanced(1, MemberRef(2)))
    assert port(device) == [2]
    device.modify_member(ProfileMember(WAYS, 2, ActionCall(TO_PORT, (7, 0))))
    assert port(device) == [7]
    device.modify_entry(balanced(1, MemberRef(1)))
    assert port(device) == [1]
    assert device.read_entries(BALANCED) == (balanced(1, MemberRef(1)),)
    assert device.direct_counter(BALANCED, (ExactMatch(1),)).packets == 3


def test_the_selector_takes_members_by_the_hash_of_its_fields(device: Device) -> None:
    add_ways(device, 3)
    device.insert_group(group(1, (3, 1), (1, 1), (2, 1)))
    device.insert_entry(balanced(1, GroupRef(1)))
    seen = set()
    for flow in range(40):
        expected = 1 + crc16(flow.to_bytes(2) + b"\5") % 3
        assert port(device, flow=flow, low=5) == [expected]
        seen.add(expected)
    assert seen == {1, 2, 3}


def test_a_weight_gives_shares_of_the_hash_behind_all_members(device: Device) -> None:
    add_ways(device, 2)
    device.insert_group(group(1, (1, 3), (2, 1)))
    device.insert_entry(balanced(1, GroupRef(1)))
    # handles: member 1 has 0, member 2 has 1, the further copies of member 1 are 2 and 3
    shares = [1, 2, 1, 1]
    for flow in range(40):
        assert port(device, flow=flow) == [shares[crc16(flow.to_bytes(2) + b"\0") % 4]]


def test_a_group_changes_for_all_its_entries_and_may_be_empty(device: Device) -> None:
    add_ways(device, 2)
    device.insert_group(group(9))
    device.insert_entry(balanced(1, GroupRef(9)))
    device.insert_entry(balanced(2, GroupRef(9)))
    assert port(device) == []
    assert device.direct_counter(BALANCED, (ExactMatch(1),)).packets == 1
    device.modify_group(group(9, (2, 1)))
    assert port(device, kind=1) == port(device, kind=2) == [2]
    assert device.read_groups(WAYS) == (group(9, (2, 1)),)


def test_a_one_shot_set_is_a_group_of_its_own(device: Device) -> None:
    parts = tuple(WeightedAction(ActionCall(TO_PORT, (n, 0)), n) for n in (1, 2))
    entry = balanced(1, OneShot(parts))
    device.insert_entry(entry)
    for flow in range(20):
        assert port(device, flow=flow) == [[1, 2, 2][crc16(flow.to_bytes(2) + b"\0") % 3]]
    assert device.read_entries(BALANCED) == (entry,)
    with pytest.raises(InvalidArgument, match="one-shot sets"):
        add_ways(device, 1)
    device.delete_entry(BALANCED, (ExactMatch(1),))
    add_ways(device, 1)
    with pytest.raises(InvalidArgument, match="takes no one-shot sets"):
        device.insert_entry(entry)


def test_what_is_in_use_cannot_go(device: Device) -> None:
    add_ways(device, 3)
    device.insert_group(group(1, (1, 1)))
    device.insert_entry(balanced(1, GroupRef(1)))
    device.insert_entry(balanced(2, MemberRef(2)))
    for refused in (1, 2):
        with pytest.raises(FailedPrecondition, match=f"member {refused} is in use"):
            device.delete_member(WAYS, refused)
    with pytest.raises(FailedPrecondition, match="group 1 is in use"):
        device.delete_group(WAYS, 1)
    device.delete_entry(BALANCED, (ExactMatch(1),))
    device.modify_entry(balanced(2, MemberRef(3)))
    device.delete_group(WAYS, 1)
    for number in (1, 2):
        device.delete_member(WAYS, number)
    assert [m.member for m in device.read_members(WAYS)] == [3]


def test_bad_writes_are_refused_and_change_nothing(device: Device) -> None:
    add_ways(device, 2)
    device.insert_group(group(1, (1, 1), max_size=2))
    way = ProfileMember(WAYS, 1, ActionCall(TO_PORT, (1, 1)))
    with pytest.raises(AlreadyExists):
        device.insert_member(way)
    with pytest.raises(AlreadyExists):
        device.insert_group(group(1))
    with pytest.raises(NotFound, match="no member 8"):
        device.modify_group(group(1, (8, 1), max_size=2))
    with pytest.raises(ResourceExhausted, match="sum to 3"):
        device.modify_group(group(1, (1, 1), (2, 2), max_size=2))
    with pytest.raises(InvalidArgument, match="comes twice"):
        device.modify_group(group(1, (1, 1), (1, 1), max_size=2))
    with pytest.raises(InvalidArgument, match="weight of 1"):
        device.modify_group(group(1, (1, 0), max_size=2))
    with pytest.raises(NotFound, match="no group 4"):
        device.insert_entry(balanced(1, GroupRef(4)))
    with pytest.raises(InvalidArgument, match="member, a group or a one-shot"):
        device.insert_entry(TableEntry(BALANCED, (ExactMatch(1),), ActionCall(TO_PORT, (1, 1))))
    with pytest.raises(InvalidArgument, match=r"no action 'IngressPipe\.stamp'"):
        device.insert_member(ProfileMember(WAYS, 7, ActionCall(STAMP, (1,))))
    with pytest.raises(InvalidArgument, match="does not fit in 9 bits"):
        device.insert_member(ProfileMember(WAYS, 7, ActionCall(TO_PORT, (512, 1))))
    with pytest.raises(InvalidArgument, match="has no selector"):
        device.insert_group(ProfileGroup(STAMPS, 1))
    assert device.read_groups(WAYS) == (group(1, (1, 1), max_size=2),)
    assert len(device.read_members(WAYS)) == 2


def test_a_full_profile_takes_no_more(device: Device) -> None:
    for number in range(16):
        device.insert_member(ProfileMember(STAMPS, number, ActionCall(STAMP, (number,))))
    with pytest.raises(ResourceExhausted, match="16 members"):
        device.insert_member(ProfileMember(STAMPS, 16, ActionCall(STAMP, (1,))))


def test_two_tables_share_the_members_of_a_profile(device: Device) -> None:
    add_ways(device, 1)
    device.insert_entry(
        TableEntry("IngressPipe.balanced_again", (TernaryMatch(4, 4),), MemberRef(1), priority=1)
    )
    out = device.process(0, packet(kind=3, low=6))
    assert out == [(1, bytes([0, 6, 0, 0]) + (1).to_bytes(4))]


def aged(flow: int, timeout_ns: int) -> TableEntry:
    call = ActionCall(STAMP, (1,))
    return TableEntry(AGED, (LpmMatch(flow, 16),), call, idle_timeout_ns=timeout_ns)


def test_idle_entries_are_reported_once_a_timeout(device: Device) -> None:
    reports: list[tuple[TableEntry, ...]] = []
    device.on_idle = reports.append
    device.process(0, packet(), now_us=10 * SECOND)
    busy, idle = aged(1, 2 * 10**9), aged(2, 2 * 10**9)
    for entry in (busy, idle, aged(3, 0)):
        device.insert_entry(entry)
    device.process(0, packet(flow=1), now_us=11 * SECOND)
    assert device.age(12 * SECOND - 1) == ()
    assert device.age(12 * SECOND) == (idle,)
    assert device.age(12 * SECOND + 1) == ()
    assert device.age(13 * SECOND) == (busy,)
    assert device.age(14 * SECOND) == (idle,)
    assert reports == [(idle,), (busy,), (idle,)]
    assert device.idle_us(AGED, busy.matches) == 3 * SECOND
    assert device.read_entry(AGED, idle.matches).idle_timeout_ns == 2 * 10**9


def test_a_changed_timeout_starts_anew_an_unchanged_one_goes_on(device: Device) -> None:
    device.insert_entry(aged(1, 10**9))
    device.process(0, packet(), now_us=SECOND // 2)
    device.modify_entry(aged(1, 10**9))
    assert device.idle_us(AGED, aged(1, 0).matches) == SECOND // 2
    device.modify_entry(aged(1, 2 * 10**9))
    assert device.idle_us(AGED, aged(1, 0).matches) == 0


def test_timeouts_need_a_table_that_supports_them(device: Device) -> None:
    add_ways(device, 1)
    entry = TableEntry(BALANCED, (ExactMatch(1),), MemberRef(1), idle_timeout_ns=1)
    with pytest.raises(InvalidArgument, match="does not support idle timeouts"):
        device.insert_entry(entry)
    with pytest.raises(InvalidArgument, match="negative"):
        device.insert_entry(aged(1, -1))
    with pytest.raises(InvalidArgument, match="does not support"):
        device.idle_us(BALANCED, (ExactMatch(1),))
    assert device.read_entries(AGED) == ()


def test_the_clock_of_the_device_dates_writes() -> None:
    now = [0]
    device = Device(clock=lambda: now[0])
    device.load_pipeline((PROGRAMS / "profiles.json").read_bytes())
    now[0] = 5 * SECOND
    device.insert_entry(aged(1, 10**9))
    assert device.age(5 * SECOND + SECOND // 2) == ()
    assert device.age(6 * SECOND) == (aged(1, 10**9),)


def test_members_that_watch_a_dead_port_are_not_chosen(device: Device) -> None:
    add_ways(device, 3)
    watching = tuple(GroupMember(n, 1, bytes([n])) for n in (1, 2))
    device.insert_group(ProfileGroup(WAYS, 1, (*watching, GroupMember(3))))
    device.insert_entry(balanced(1, GroupRef(1)))
    flows = range(64)

    def chosen() -> set[int]:
        return {p for flow in flows for p in port(device, flow=flow)}

    assert chosen() == {1, 2, 3}
    device.set_live_ports(frozenset({2}))
    assert chosen() == {2, 3}
    # a group written while ports are dead
    device.modify_group(ProfileGroup(WAYS, 1, watching))
    assert chosen() == {2}
    device.set_live_ports(frozenset())
    assert chosen() == set()
    # the group is as it was written
    assert device.read_groups(WAYS) == (ProfileGroup(WAYS, 1, watching),)
    # another pipeline, the same ports
    device.succeed(staged(device, watching))
    assert chosen() == set()
    device.set_live_ports(None)
    assert chosen() == {1, 2}


def staged(device: Device, watching: tuple[GroupMember, ...]) -> Device:
    found = device.stage_pipeline((PROGRAMS / "profiles.json").read_bytes())
    add_ways(found, 2)
    found.insert_group(ProfileGroup(WAYS, 1, watching))
    found.insert_entry(balanced(1, GroupRef(1)))
    return found


def test_actions_of_a_set_watch_ports_too(device: Device) -> None:
    ways = tuple(
        WeightedAction(ActionCall(TO_PORT, (n, n)), 2, bytes([n]) if n < 3 else b"")
        for n in (1, 2, 3)
    )
    device.set_live_ports(frozenset({1}))
    device.insert_entry(balanced(1, OneShot(ways)))

    def chosen() -> set[int]:
        return {p for flow in range(64) for p in port(device, flow=flow)}

    assert chosen() == {1, 3}
    device.set_live_ports(frozenset({1, 2}))
    assert chosen() == {1, 2, 3}
    device.set_live_ports(frozenset())
    device.delete_entry(BALANCED, (ExactMatch(1),))
    # all handles are free again, also of those that were not chosen
    device.insert_entry(balanced(1, OneShot(ways)))
    assert chosen() == {3}
