"""Counters, multicast groups, clone sessions, and what no target serves."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from controller.p4rt import Schema
from controller.program import CloneSession, MulticastGroup, TableEntry
from tests.packet.p4runtime.messages import (
    ME,
    delete,
    entry,
    insert,
    modify,
    refused,
)
from tests.packet.targets import Target
from tests.packet.targets_stub import DEADLINE_S, StubClient


def test_indirect_counters(primary: StubClient, schema: Schema) -> None:
    counter = schema.names.counters["arrived"]
    cell = p4r.Entity()
    cell.counter_entry.counter_id = counter.id
    cell.counter_entry.index.index = 3
    cell.counter_entry.data.packet_count = 7
    cell.counter_entry.data.byte_count = 700
    assert primary.write(ME, modify(cell), insert(cell)) == ["OK", "INVALID_ARGUMENT"]
    every = p4r.Entity()
    every.counter_entry.counter_id = counter.id
    cells = primary.read(every)
    assert [c.counter_entry.index.index for c in cells] == list(range(16))
    assert cells[3] == cell
    every.counter_entry.data.packet_count = 0
    assert primary.write(ME, modify(every)) == ["UNIMPLEMENTED"]
    cell.counter_entry.index.index = -1
    answer = primary.write(ME, modify(cell))
    assert answer[0] in ("INVALID_ARGUMENT", "OUT_OF_RANGE")


def test_direct_counters(primary: StubClient, schema: Schema, switch: Target) -> None:
    primary.write(ME, insert(entry(schema)))
    direct = p4r.Entity()
    direct.direct_counter_entry.table_entry.CopyFrom(entry(schema).table_entry)
    direct.direct_counter_entry.table_entry.ClearField("action")
    direct.direct_counter_entry.data.packet_count = 5
    direct.direct_counter_entry.data.byte_count = 500
    assert primary.write(ME, modify(direct), insert(direct)) == ["OK", "INVALID_ARGUMENT"]
    assert primary.read(direct) == [direct]
    every = p4r.Entity()
    every.direct_counter_entry.table_entry.table_id = entry(schema).table_entry.table_id
    assert primary.read(every) == [direct]


def test_counter_data_is_in_an_entry_only_when_asked_for(
    primary: StubClient, schema: Schema
) -> None:
    counted = entry(schema)
    counted.table_entry.counter_data.packet_count = 3
    counted.table_entry.counter_data.byte_count = 30
    assert primary.write(ME, insert(counted)) == ["OK"]
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=counted.table_entry.table_id))
    assert primary.read(request) == [entry(schema)]
    request.table_entry.counter_data.SetInParent()
    assert primary.read(request) == [counted]
    assert primary.write(ME, modify(entry(schema, port=4))) == ["OK"]
    (after,) = primary.read(request)
    assert after.table_entry.counter_data == counted.table_entry.counter_data


def test_a_table_without_direct_counter_takes_no_counter_data(
    primary: StubClient, schema: Schema
) -> None:
    counted = schema.entity(TableEntry.of("acl", {"src_addr": (2, 6)}, "drop", priority=1))
    counted.table_entry.counter_data.packet_count = 1
    assert primary.write(ME, insert(counted)) == ["INVALID_ARGUMENT"]


def test_multicast_groups(primary: StubClient, schema: Schema) -> None:
    group = schema.entity(MulticastGroup(4, ((1, 1), (2, 1))))
    other = schema.entity(MulticastGroup(4, ((3, 1),)))
    assert primary.write(ME, modify(group), delete(group)) == ["NOT_FOUND", "NOT_FOUND"]
    assert primary.write(ME, insert(group), insert(other), modify(other)) == [
        "OK",
        "ALREADY_EXISTS",
        "OK",
    ]
    wildcard = p4r.Entity()
    wildcard.packet_replication_engine_entry.multicast_group_entry.SetInParent()
    assert primary.read(wildcard) == [other]
    assert primary.write(ME, delete(other)) == ["OK"]
    assert primary.read(wildcard) == []
    with pytest.raises(grpc.RpcError) as caught:
        primary.read(other)
    assert refused(caught) == "NOT_FOUND"


def test_bad_multicast_groups(primary: StubClient, schema: Schema) -> None:
    group = schema.entity(MulticastGroup(4, ((1, 1),)))
    zero, twice, high = p4r.Entity(), p4r.Entity(), p4r.Entity()
    for bad in (zero, twice, high):
        bad.CopyFrom(group)
    zero.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 0
    high.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 1 << 15
    replicas = twice.packet_replication_engine_entry.multicast_group_entry.replicas
    replicas.add().CopyFrom(replicas[0])
    answers = primary.write(ME, insert(zero), insert(twice), insert(high))
    assert answers == ["INVALID_ARGUMENT", "INVALID_ARGUMENT", "OUT_OF_RANGE"]


def test_clone_sessions(primary: StubClient, schema: Schema) -> None:
    session = schema.entity(CloneSession(4, ((1, 0), (2, 1))))
    other = schema.entity(CloneSession(4, ((3, 0),)))
    assert primary.write(ME, modify(session), delete(session)) == ["NOT_FOUND", "NOT_FOUND"]
    assert primary.write(ME, insert(session), insert(other)) == ["OK", "ALREADY_EXISTS"]
    wildcard = p4r.Entity()
    wildcard.packet_replication_engine_entry.clone_session_entry.SetInParent()
    # The order of replicas is the switch's affair; the client's values are sorted.
    assert [schema.value(read) for read in primary.read(wildcard)] == [schema.value(session)]
    assert primary.write(ME, modify(other)) == ["OK"]
    assert primary.read(wildcard) == [other]
    assert primary.write(ME, delete(other)) == ["OK"]
    assert primary.read(wildcard) == []


def test_registers_are_not_served(primary: StubClient) -> None:
    register = p4r.Entity()
    register.register_entry.register_id = 0x1600_0001
    assert primary.write(ME, modify(register)) == ["UNIMPLEMENTED"]
    with pytest.raises(grpc.RpcError) as caught:
        primary.read(register)
    assert refused(caught) == "UNIMPLEMENTED"


def test_atomic_writes_are_not_served(primary: StubClient, schema: Schema) -> None:
    request = p4r.WriteRequest(
        device_id=primary.device_id,
        election_id=p4r.Uint128(high=ME >> 64),
        updates=[insert(entry(schema))],
        atomicity=p4r.WriteRequest.ROLLBACK_ON_ERROR,
    )
    with pytest.raises(grpc.RpcError) as caught:
        primary.stub.Write(request, timeout=DEADLINE_S)
    assert refused(caught) == "UNIMPLEMENTED"
