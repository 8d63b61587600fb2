"""Profiles, meters, digests, idle timeouts, value sets: codes, values read back, packets.

On every target, except that the switch inside this process has no clock of its own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import p4r

from tests.packet.p4runtime.control_cases import CASES, Differs
from tests.packet.p4runtime.control_messages import (
    NAMES,
    action,
    config,
    digest,
    direct_meter,
    entry,
    group,
    member,
    meter,
    one_shot,
    to_group,
    to_member,
    updates,
    value_set,
)
from tests.packet.p4runtime.messages import ME, OK, refused
from tests.packet.targets import Target
from tests.packet.targets_sentinels import control, control_sentinel
from tests.packet.targets_stub import DEADLINE_S, Stream, StubClient

DST, SRC = 0x02_00_00_00_00_01, 0x02_00_00_00_00_99
TELL = 0x88B6
YELLOW_PORT, RED_PORT, KNOWN_PORT = 5, 6, 7
SECOND_NS = 10**9


def frame(src: int = SRC, ether_type: int = 0x88B5, dst: int = DST) -> bytes:
    header = dst.to_bytes(6, "big") + src.to_bytes(6, "big") + ether_type.to_bytes(2, "big")
    return header.ljust(60, b"\0")


@pytest.fixture
def client(target: Target) -> Iterator[StubClient]:
    """A client of the target, which runs the control program; it has a stream `session`."""
    target.push(control(), control_sentinel())
    target.disconnect()
    with StubClient(target.address) as client:
        yield client


@pytest.fixture
def session(client: StubClient) -> Stream:
    """The stream of the primary, which writes as ME."""
    stream = client.stream()
    assert stream.become(ME) == (OK, ME)
    return stream


def write(client: StubClient, *steps: tuple[str, p4r.Entity]) -> None:
    assert client.write(ME, *updates(*steps)) == ["OK"] * len(steps)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("session")
def test_codes_are_those_of_bmv2(client: StubClient, target: Target, case: str) -> None:
    steps = [step for step, _ in CASES[case]]
    wanted = [
        (code.bmv2 if target.kind == "bmv2" else code.here) if isinstance(code, Differs) else code
        for _, code in CASES[case]
    ]
    got = [client.write(ME, update)[0] for update in updates(*steps)]
    assert list(enumerate(got)) == list(enumerate(wanted))


@pytest.mark.usefixtures("session")
def test_profiles_are_read_back(client: StubClient) -> None:
    members = [member(1, action(port=1)), member(2, action("drop"))]
    ways = group(7, [(1, 1), (2, 1)], max_size=4)
    balanced = entry("balanced", DST, to_group(7))
    write(client, *(("insert", e) for e in (*members, ways, balanced)))
    profile = NAMES.action_profiles["ways"].id
    every = p4r.Entity(action_profile_member=p4r.ActionProfileMember(action_profile_id=profile))
    assert client.read(every) == members
    all_of_all = p4r.Entity(action_profile_member=p4r.ActionProfileMember())
    assert client.read(all_of_all) == members
    assert client.read(member(2, action("drop"))) == members[1:]
    assert client.read(member(3, action("drop"))) == []
    assert client.read(p4r.Entity(action_profile_group=p4r.ActionProfileGroup())) == [ways]
    assert client.read(group(7)) == [ways]
    assert client.read(group(8)) == []
    assert client.read(entry("balanced", DST, None)) == [balanced]
    heavier = group(7, [(1, 1), (2, 3)], max_size=4)
    write(client, ("modify", heavier))
    assert client.read(group(7)) == [heavier]


@pytest.mark.usefixtures("session")
def test_one_shot_sets_are_read_back(client: StubClient) -> None:
    wanted = entry("balanced", DST, one_shot((action(port=1), 1), (action("drop"), 3)))
    write(client, ("insert", wanted))
    assert client.read(entry("balanced", DST, None)) == [wanted]


@pytest.mark.usefixtures("session")
def test_a_group_spreads_flows_and_keeps_each_on_its_way(
    client: StubClient, target: Target
) -> None:
    write(
        client,
        ("insert", member(1, action(port=1))),
        ("insert", member(2, action(port=2))),
        ("insert", group(7, [(1, 1), (2, 1)])),
        ("insert", entry("balanced", DST, to_group(7))),
    )
    ways = {}
    for source in range(16):
        first, second = target.exchange(3, frame(source)), target.exchange(3, frame(source))
        assert first == second
        ((ways[source], _),) = first
    assert set(ways.values()) == {1, 2}
    write(client, ("modify", member(2, action(port=4))))
    moved = {source: target.exchange(3, frame(source))[0][0] for source in range(16)}
    assert moved == {source: 4 if port == 2 else port for source, port in ways.items()}
    write(client, ("modify", group(7, [(1, 1)])))
    assert {target.exchange(3, frame(source))[0][0] for source in range(16)} == {1}


@pytest.mark.usefixtures("session")
def test_a_member_is_what_its_entries_do(client: StubClient, target: Target) -> None:
    write(
        client,
        ("insert", member(5, action(port=2), "picks")),
        ("insert", entry("picked", DST, to_member(5))),
    )
    assert target.exchange(1, frame()) == [(2, frame())]
    write(client, ("modify", member(5, action("drop"), "picks")))
    assert target.exchange(1, frame()) == []


@pytest.mark.usefixtures("session")
def test_meters_are_read_back(client: StubClient) -> None:
    limits = (10, 20, 30, 40)
    write(client, ("modify", meter(3, limits)))
    assert client.read(meter(3, None)) == [meter(3, limits)]
    whole = client.read(meter(None, None))
    assert whole == [meter(i, limits if i == 3 else None) for i in range(8)]
    assert client.read(p4r.Entity(meter_entry=p4r.MeterEntry())) == whole
    write(client, ("modify", meter(3, None)))
    assert client.read(meter(3, None)) == [meter(3, None)]


@pytest.mark.usefixtures("session")
def test_direct_meters_are_read_back(client: StubClient) -> None:
    limits = (10, 20, 30, 40)
    watched = entry("watched", DST, action("watch", port=2))
    write(client, ("insert", watched), ("modify", direct_meter(DST, limits)))
    assert client.read(direct_meter(DST, None)) == [direct_meter(DST, limits)]
    every = p4r.DirectMeterEntry(table_entry=p4r.TableEntry(table_id=NAMES.tables["watched"].id))
    assert client.read(p4r.Entity(direct_meter_entry=every)) == [direct_meter(DST, limits)]
    asked = p4r.Entity(table_entry=every.table_entry)
    assert client.read(asked) == [watched]
    asked.table_entry.meter_config.SetInParent()
    watched.table_entry.meter_config.CopyFrom(config(limits))
    assert client.read(asked) == [watched]
    other = p4r.DirectMeterEntry(table_entry=p4r.TableEntry(table_id=NAMES.tables["aged"].id))
    with pytest.raises(grpc.RpcError) as caught:
        client.read(p4r.Entity(direct_meter_entry=other))
    assert refused(caught) == "INVALID_ARGUMENT"


@pytest.mark.usefixtures("session")
def test_meters_colour_packets(client: StubClient, target: Target) -> None:
    # One token an hour: within the test only the bursts count.
    write(
        client,
        ("insert", entry("watched", DST, action("watch", port=2))),
        ("modify", direct_meter(DST, (1, 3, 1, 5))),
    )
    for _ in range(8):
        target.send(1, frame())
    ports = sorted(port for port, _ in target.collect())
    assert ports == [2] * 3 + [YELLOW_PORT] * 2 + [RED_PORT] * 3
    write(client, ("modify", direct_meter(DST, None)))
    assert target.exchange(1, frame()) == [(2, frame())]


def samples(message: p4r.StreamMessageResponse) -> list[tuple[int, int]]:
    """The (source, port) of every sample of a digest list."""
    assert message.digest.digest_id == NAMES.digests["learned_t"].id
    return [
        (int.from_bytes(d.struct.members[0].bitstring, "big"), d.struct.members[1].bitstring[-1])
        for d in message.digest.data
    ]


def test_digests_reach_the_controller(client: StubClient, session: Stream, target: Target) -> None:
    wanted = digest(max_list_size=1)
    write(client, ("insert", wanted))
    assert client.read(wanted) == [wanted]
    lists = []
    for port in (1, 2):
        target.exchange(port, frame(ether_type=TELL))
        lists.append(session.receive())
    assert [samples(one) for one in lists] == [[(SRC, 1)], [(SRC, 2)]]
    assert lists[1].digest.list_id == lists[0].digest.list_id + 1
    assert lists[1].digest.timestamp > lists[0].digest.timestamp
    write(client, ("delete", wanted))
    with pytest.raises(grpc.RpcError) as caught:
        client.read(wanted)
    assert refused(caught) == "NOT_FOUND"


def test_a_sample_comes_once_until_it_is_acknowledged(
    client: StubClient, session: Stream, target: Target
) -> None:
    write(client, ("insert", digest(max_list_size=1, ack_timeout_ns=600 * SECOND_NS)))
    target.exchange(1, frame(ether_type=TELL))
    first = session.receive()
    assert samples(first) == [(SRC, 1)]
    target.exchange(1, frame(ether_type=TELL))
    target.exchange(2, frame(ether_type=TELL))
    assert samples(session.receive()) == [(SRC, 2)]
    session.send(
        p4r.StreamMessageRequest(
            digest_ack=p4r.DigestListAck(
                digest_id=first.digest.digest_id, list_id=first.digest.list_id
            )
        )
    )
    deadline = time.monotonic() + DEADLINE_S
    for attempt in itertools.count(1):  # the acknowledgement is not answered
        assert time.monotonic() < deadline
        target.exchange(1, frame(ether_type=TELL))
        target.exchange(3, frame(src=SRC + attempt, ether_type=TELL))
        if samples(session.receive()) == [(SRC, 1)]:
            break


def test_samples_wait_for_a_full_list(client: StubClient, session: Stream, target: Target) -> None:
    if target.kind == "bmv2":
        pytest.skip("bmv2 counts the samples of a list only with an acknowledgement timeout")
    write(client, ("insert", digest(max_timeout_ns=600 * SECOND_NS, max_list_size=3)))
    for port in (1, 2, 3, 4):
        target.exchange(port, frame(ether_type=TELL))
    assert samples(session.receive()) == [(SRC, 1), (SRC, 2), (SRC, 3)]


def test_samples_do_not_wait_for_ever(client: StubClient, session: Stream, target: Target) -> None:
    write(client, ("insert", digest(max_timeout_ns=SECOND_NS // 10, max_list_size=100)))
    target.exchange(1, frame(ether_type=TELL))
    assert samples(session.receive()) == [(SRC, 1)]


def test_an_idle_entry_is_told(client: StubClient, session: Stream, target: Target) -> None:
    if target.kind == "softswitch":
        pytest.skip("the switch in this process has no clock: see tests/unit/p4runtime")

    def short(message: p4r.TableEntry) -> None:
        message.idle_timeout_ns = SECOND_NS // 2
        message.controller_metadata = 77

    wanted = entry("aged", SRC, action(port=2), short)
    write(client, ("insert", wanted), ("insert", entry("aged", SRC + 1, action(port=2))))
    assert target.exchange(1, frame()) == [(2, frame())]
    (told,) = session.receive().idle_timeout_notification.table_entry
    wanted.table_entry.ClearField("action")
    assert told == wanted.table_entry
    asked = entry("aged", SRC, None)
    asked.table_entry.time_since_last_hit.SetInParent()
    (read,) = client.read(asked)
    assert read.table_entry.time_since_last_hit.elapsed_ns >= SECOND_NS // 2


def test_time_since_the_last_hit_is_of_ageing_tables(client: StubClient, session: Stream) -> None:
    asked = entry("measured", SRC, None)
    asked.table_entry.time_since_last_hit.SetInParent()
    with pytest.raises(grpc.RpcError) as caught:
        client.read(asked)
    assert refused(caught) == "INVALID_ARGUMENT"


@pytest.mark.usefixtures("session")
def test_value_sets(client: StubClient, target: Target) -> None:
    if target.kind == "bmv2":
        pytest.skip("bmv2 does not serve value sets over P4Runtime")
    assert target.exchange(1, frame(ether_type=0x1234)) == []
    write(client, ("modify", value_set(0x1234, 0x4321)))
    assert target.exchange(1, frame(ether_type=0x1234)) == [(KNOWN_PORT, frame(ether_type=0x1234))]
    assert client.read(value_set()) == [value_set(0x1234, 0x4321)]
    write(client, ("modify", value_set()))
    assert target.exchange(1, frame(ether_type=0x1234)) == []
