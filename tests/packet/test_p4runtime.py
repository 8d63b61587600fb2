"""P4Runtime as clients see it, on every target: the software switch answers as bmv2 does."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import p4r

from controller.p4rt import NotPrimaryError, Schema
from controller.program import CloneSession, MulticastGroup, Op, TableEntry, Update
from tests.packet.targets import CPU_PORT, ELECTION_ID, Program, Target
from tests.packet.targets_sentinels import probe, probe_sentinel
from tests.packet.targets_stub import DEADLINE_S, StreamEndedError, StubClient

OK, ALREADY_EXISTS = 0, 6
ME = 1 << 100
"""An election id that needs more than 64 bits."""

DST = 0x02_00_00_00_00_01


@pytest.fixture
def switch(target: Target) -> Target:
    """The target, running the probe program, nobody connected."""
    target.push(probe(), probe_sentinel())
    target.disconnect()
    return target


@pytest.fixture
def client(switch: Target) -> Iterator[StubClient]:
    with StubClient(switch.address) as client:
        yield client


@pytest.fixture
def primary(client: StubClient) -> StubClient:
    """A client whose election id ME is the primary."""
    assert client.stream().become(ME) == (OK, ME)
    return client


@pytest.fixture
def schema() -> Schema:
    return Schema(probe())


def entry(schema: Schema, port: int = 2, dst: int = DST) -> p4r.Entity:
    return schema.entity(TableEntry.of("forward", {"dst_addr": dst}, "to_port", {"port": port}))


def insert(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=entity)


def modify(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def delete(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.DELETE, entity=entity)


def refused(error: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    name: str = error.value.code().name
    return name


# Arbitration


def test_the_highest_election_id_is_primary(client: StubClient) -> None:
    low, high, middle = client.stream(), client.stream(), client.stream()
    assert low.become(5) == (OK, 5)
    assert high.become(7) == (OK, 7)
    assert low.notice() == (ALREADY_EXISTS, 7)
    assert middle.become(6) == (ALREADY_EXISTS, 7)


def test_election_ids_are_compared_with_all_128_bits(client: StubClient) -> None:
    low, high = client.stream(), client.stream()
    assert low.become((1 << 64) - 1) == (OK, (1 << 64) - 1)
    assert high.become(1 << 64) == (OK, 1 << 64)
    assert low.notice() == (ALREADY_EXISTS, 1 << 64)


def test_when_the_primary_goes_the_next_takes_over(client: StubClient, schema: Schema) -> None:
    first, second, third = client.stream(), client.stream(), client.stream()
    assert first.become(9) == (OK, 9)
    assert second.become(8) == (ALREADY_EXISTS, 9)
    assert third.become(7) == (ALREADY_EXISTS, 9)
    first.close()
    assert second.notice() == (OK, 8)
    assert third.notice() == (ALREADY_EXISTS, 8)
    assert client.write(8, insert(entry(schema))) == ["OK"]


def test_a_used_election_id_is_refused(client: StubClient) -> None:
    assert client.stream().become(5) == (OK, 5)
    with pytest.raises(StreamEndedError) as caught:
        client.stream().become(5)
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


def test_a_backup_may_raise_its_bid(client: StubClient) -> None:
    one, other = client.stream(), client.stream()
    assert one.become(5) == (OK, 5)
    assert other.become(4) == (ALREADY_EXISTS, 5)
    assert other.become(6) == (OK, 6)
    assert one.notice() == (ALREADY_EXISTS, 6)


def test_only_the_primary_writes(client: StubClient, schema: Schema) -> None:
    assert client.stream().become(5) == (OK, 5)
    assert client.stream().become(3) == (ALREADY_EXISTS, 5)
    for election_id in (3, 6, None):
        with pytest.raises(grpc.RpcError) as caught:
            client.write(election_id, insert(entry(schema)))
        assert refused(caught) == "PERMISSION_DENIED"
    assert client.write(5, insert(entry(schema))) == ["OK"]


def test_only_the_primary_pushes_a_pipeline(client: StubClient) -> None:
    assert client.stream().become(5) == (OK, 5)
    request = p4r.SetForwardingPipelineConfigRequest(
        device_id=client.device_id,
        election_id=p4r.Uint128(low=4),
        action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        config=Schema(probe()).pipeline,
    )
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)
    assert refused(caught) == "PERMISSION_DENIED"


# Table entries


def test_insert_modify_delete(primary: StubClient, schema: Schema) -> None:
    one, other = entry(schema, port=2), entry(schema, port=3)
    assert primary.write(ME, modify(one), delete(one)) == ["NOT_FOUND", "NOT_FOUND"]
    assert primary.write(ME, insert(one), insert(other)) == ["OK", "ALREADY_EXISTS"]
    assert primary.write(ME, modify(other), delete(one), delete(one)) == ["OK", "OK", "NOT_FOUND"]


def test_a_batch_goes_on_behind_a_refused_update(primary: StubClient, schema: Schema) -> None:
    updates = [insert(entry(schema, dst=dst)) for dst in (1, 1, 2)]
    assert primary.write(ME, *updates) == ["OK", "ALREADY_EXISTS", "OK"]
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=schema.table("forward").id))
    assert len(primary.read(request)) == 2


def test_a_full_table_refuses(primary: StubClient, schema: Schema, switch: Target) -> None:
    updates = [insert(entry(schema, dst=dst)) for dst in range(9)]
    *fit, last = primary.write(ME, *updates)
    assert fit == ["OK"] * 8
    # bmv2's server has one code for all that its data plane refuses.
    assert last == ("UNKNOWN" if switch.kind == "bmv2" else "RESOURCE_EXHAUSTED")


def changed(schema: Schema, name: str, kind: str) -> p4r.Entity:
    """Return a good entity with one thing wrong; `kind` says what."""
    good = {
        "acl": TableEntry.of("acl", {"src_addr": (2, 6)}, "drop", priority=1),
        "routes": TableEntry.of("routes", {"dst_addr": (1 << 47, 1)}, "drop"),
        "range": TableEntry.of("acl", {"ether_type": (1, 2)}, "drop", priority=1),
        "forward": TableEntry.of("forward", {"dst_addr": DST}, "to_port", {"port": 1}),
    }[name]
    entity = schema.entity(good)
    wire = entity.table_entry
    match kind:
        case "no priority":
            wire.priority = 0
        case "a priority":
            wire.priority = 1
        case "zero mask":
            wire.match[0].ternary.value = wire.match[0].ternary.mask = b"\0"
        case "value outside mask":
            wire.match[0].ternary.value = b"\x07"
        case "prefix 0":
            wire.match[0].lpm.prefix_len = 0
            wire.match[0].lpm.value = b"\0"
        case "prefix too long":
            wire.match[0].lpm.prefix_len = 49
        case "bits behind the prefix":
            wire.match[0].lpm.value = b"\x80\0\0\0\0\1"
        case "empty range":
            wire.match[0].range.low = b"\3"
        case "value too wide":
            wire.match[0].exact.value = b"\1" + bytes(6)
        case "parameter too wide":
            wire.action.action.params[0].value = b"\2\0"
        case "unknown table":
            wire.table_id = 0x02_FF_FF_FF
        case "unknown field":
            wire.match[0].field_id = 77
        case "missing field":
            del wire.match[:]
        case "wrong match type":
            wire.match[0].lpm.value = b"\1"
            wire.match[0].lpm.prefix_len = 48
        case "unknown action":
            wire.action.action.action_id = 0x01_FF_FF_FF
        case "action of another table":
            permit = schema.names.actions["permit"]
            wire.action.action.action_id = permit.id
            del wire.action.action.params[:]
        case "missing parameter":
            del wire.action.action.params[:]
        case "unknown parameter":
            wire.action.action.params[0].param_id = 9
        case "no action":
            wire.ClearField("action")
        case _:
            raise AssertionError(kind)
    return entity


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("acl", "no priority"),
        ("forward", "a priority"),
        ("acl", "zero mask"),
        ("acl", "value outside mask"),
        ("routes", "prefix 0"),
        ("routes", "prefix too long"),
        ("routes", "bits behind the prefix"),
        ("range", "empty range"),
        ("forward", "value too wide"),
        ("forward", "parameter too wide"),
        ("forward", "unknown table"),
        ("forward", "unknown field"),
        ("forward", "missing field"),
        ("forward", "wrong match type"),
        ("forward", "unknown action"),
        ("forward", "action of another table"),
        ("forward", "missing parameter"),
        ("forward", "unknown parameter"),
        ("forward", "no action"),
    ],
)
def test_a_bad_entry_is_an_invalid_argument(
    primary: StubClient, schema: Schema, name: str, kind: str
) -> None:
    good = insert(entry(schema, dst=DST + 1))
    bad = insert(changed(schema, name, kind))
    assert primary.write(ME, bad, good) == ["INVALID_ARGUMENT", "OK"]


def test_leading_zeros_are_taken_and_the_shortest_form_is_returned(
    primary: StubClient, schema: Schema
) -> None:
    padded = entry(schema, port=2, dst=5)
    padded.table_entry.match[0].exact.value = bytes(9) + b"\5"
    padded.table_entry.action.action.params[0].value = bytes(7) + b"\2"
    assert primary.write(ME, insert(padded)) == ["OK"]
    assert primary.write(ME, insert(entry(schema, port=2, dst=5))) == ["ALREADY_EXISTS"]
    (read,) = primary.read(
        p4r.Entity(table_entry=p4r.TableEntry(table_id=padded.table_entry.table_id))
    )
    assert read == entry(schema, port=2, dst=5)


def test_entries_with_one_match_differ_by_priority(primary: StubClient, schema: Schema) -> None:
    updates = [
        insert(schema.entity(TableEntry.of("acl", {"src_addr": (2, 6)}, action, priority=priority)))
        for action, priority in (("drop", 1), ("permit", 2), ("drop", 2))
    ]
    assert primary.write(ME, *updates) == ["OK", "OK", "ALREADY_EXISTS"]


def test_a_single_entry_is_read_by_its_key(primary: StubClient, schema: Schema) -> None:
    primary.write(ME, insert(entry(schema, dst=1)), insert(entry(schema, dst=2)))
    wanted = entry(schema, dst=2)
    wanted.table_entry.ClearField("action")
    assert primary.read(wanted) == [entry(schema, dst=2)]
    wanted.table_entry.match[0].exact.value = b"\3"
    assert primary.read(wanted) == []


def test_metadata_comes_back_with_the_entry(primary: StubClient, schema: Schema) -> None:
    marked = entry(schema)
    marked.table_entry.metadata = b"whose"
    marked.table_entry.controller_metadata = 42
    assert primary.write(ME, insert(marked)) == ["OK"]
    wildcard = p4r.Entity(table_entry=p4r.TableEntry(table_id=marked.table_entry.table_id))
    assert primary.read(wildcard) == [marked]
    assert primary.write(ME, modify(entry(schema))) == ["OK"]
    assert primary.read(wildcard) == [entry(schema)]


def test_default_entries(primary: StubClient, schema: Schema) -> None:
    default = entry(schema, port=3)
    default.table_entry.is_default_action = True
    del default.table_entry.match[:]
    request = p4r.Entity(
        table_entry=p4r.TableEntry(table_id=schema.table("forward").id, is_default_action=True)
    )
    (original,) = primary.read(request)
    assert primary.write(ME, insert(default), delete(default)) == ["INVALID_ARGUMENT"] * 2
    assert primary.write(ME, modify(default)) == ["OK"]
    assert primary.read(request) == [default]
    default.table_entry.ClearField("action")
    assert primary.write(ME, modify(default)) == ["OK"]
    assert primary.read(request) == [original]


def test_a_constant_default_is_refused(primary: StubClient, schema: Schema) -> None:
    default = schema.entity(TableEntry.of("acl", {}, "drop", priority=1))
    default.table_entry.priority = 0
    default.table_entry.is_default_action = True
    assert primary.write(ME, modify(default)) == ["PERMISSION_DENIED"]


def test_actions_keep_to_their_scope(primary: StubClient, schema: Schema) -> None:
    no_action = schema.names.actions["NoAction"].id
    in_entry = entry(schema)
    in_entry.table_entry.action.action.action_id = no_action
    del in_entry.table_entry.action.action.params[:]
    as_default = schema.entity(TableEntry.of("forward", {"dst_addr": 1}, "drop"))
    as_default.table_entry.is_default_action = True
    del as_default.table_entry.match[:]
    answers = primary.write(ME, insert(in_entry), modify(as_default))
    assert answers == ["PERMISSION_DENIED", "PERMISSION_DENIED"]


def test_an_update_needs_a_type_and_an_entity(primary: StubClient, schema: Schema) -> None:
    untyped = p4r.Update(entity=entry(schema))
    assert primary.write(ME, untyped)[0] == "INVALID_ARGUMENT"
    assert primary.write(ME, p4r.Update(type=p4r.Update.INSERT))[0] in (
        "INVALID_ARGUMENT",
        "UNKNOWN",
    )


# Counters


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


# Groups, sessions, and what is not served


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


# The pipeline


def pipeline(
    client: StubClient,
    response_type: p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType,
) -> p4r.ForwardingPipelineConfig:
    request = p4r.GetForwardingPipelineConfigRequest(
        device_id=client.device_id, response_type=response_type
    )
    reply: p4r.GetForwardingPipelineConfigResponse = client.stub.GetForwardingPipelineConfig(
        request, timeout=DEADLINE_S
    )
    return reply.config


def test_the_pipeline_is_given_back_in_the_parts_asked_for(client: StubClient) -> None:
    wanted = Schema(probe()).pipeline
    kinds = p4r.GetForwardingPipelineConfigRequest
    whole = pipeline(client, kinds.ALL)
    assert (whole.p4info, whole.p4_device_config) == (wanted.p4info, wanted.p4_device_config)
    assert pipeline(client, kinds.P4INFO_AND_COOKIE).p4info == wanted.p4info
    assert not pipeline(client, kinds.P4INFO_AND_COOKIE).p4_device_config
    device_config = pipeline(client, kinds.DEVICE_CONFIG_AND_COOKIE)
    assert device_config.p4_device_config == wanted.p4_device_config
    assert not device_config.HasField("p4info")
    cookie = pipeline(client, kinds.COOKIE_ONLY)
    assert not cookie.HasField("p4info")
    assert not cookie.p4_device_config
    assert cookie.cookie == whole.cookie
    assert cookie.cookie.cookie != 0


def test_a_push_empties_tables_and_counters(primary: StubClient, schema: Schema) -> None:
    counted = entry(schema)
    counted.table_entry.counter_data.packet_count = 3
    primary.write(ME, insert(counted))
    request = p4r.SetForwardingPipelineConfigRequest(
        device_id=primary.device_id,
        election_id=p4r.Uint128(high=ME >> 64),
        action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        config=Schema(Program.fresh(probe())).pipeline,
    )
    primary.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)
    everything = p4r.Entity(table_entry=p4r.TableEntry(table_id=counted.table_entry.table_id))
    assert primary.read(everything) == []
    assert primary.write(ME, insert(entry(schema))) == ["OK"]


# Packets


def packet_out(payload: bytes, port: int) -> p4r.StreamMessageRequest:
    metadata = p4r.PacketMetadata(metadata_id=1, value=bytes([port]))
    packet = p4r.PacketOut(payload=payload, metadata=[metadata])
    return p4r.StreamMessageRequest(packet=packet)


def test_a_packet_out_leaves_by_the_port_of_its_header(target: Target) -> None:
    target.push(probe(), probe_sentinel())
    with StubClient(target.address) as client:
        stream = client.stream()
        assert stream.become(ME) == (OK, ME)
        stream.send(packet_out(b"p" * 60, 4))
        assert target.collect(at_least=1) == [(4, b"p" * 60)]


def test_a_packet_in_carries_its_header(target: Target) -> None:
    target.push(probe(), probe_sentinel())
    target.insert(TableEntry.of("forward", {"dst_addr": DST}, "to_cpu", {"reason": 5}))
    frame = DST.to_bytes(6, "big") + bytes(6) + b"\x12\x34" + b"x" * 50
    with StubClient(target.address) as client:
        stream = client.stream()
        assert stream.become(ME) == (OK, ME)
        target.send(6, frame)
        packet = stream.receive().packet
    assert packet.payload == frame
    assert {m.metadata_id: m.value for m in packet.metadata} == {1: b"\6", 2: b"\5", 3: b"\0"}


def test_the_cpu_port_is_not_a_port_of_the_table(target: Target) -> None:
    # What goes to the CPU without a primary is dropped, and the switch lives on.
    target.push(probe(), probe_sentinel())
    target.insert(TableEntry.of("forward", {"dst_addr": DST}, "to_port", {"port": CPU_PORT}))
    frame = DST.to_bytes(6, "big") + bytes(54)
    assert target.exchange(1, frame) == []


def test_a_controller_is_told_that_another_took_over(target: Target) -> None:
    target.push(probe(), probe_sentinel())
    updates = [Update(Op.INSERT, TableEntry.of("forward", {"dst_addr": DST}, "drop"))]
    with StubClient(target.address) as client:
        watcher, other = client.stream(), client.stream()
        assert watcher.become(ELECTION_ID - 1) == (ALREADY_EXISTS, ELECTION_ID)
        assert other.become(ME) == (OK, ME)
        assert watcher.notice() == (ALREADY_EXISTS, ME)
        with pytest.raises(NotPrimaryError, match=rf"{target.kind}: .*primary"):
            target.write(updates)
        other.close()
        assert watcher.notice() == (ALREADY_EXISTS, ELECTION_ID)
        target.write(updates)
    assert len(target.entries()) == 1
