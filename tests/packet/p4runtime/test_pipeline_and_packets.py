"""The pipeline is given back and replaced; packets go in and out by the CPU port."""

from __future__ import annotations

import pytest
from finsy.proto import p4r

from controller.p4rt import NotPrimaryError, Schema
from controller.program import Op, TableEntry, Update
from tests.packet.p4runtime.messages import (
    ALREADY_EXISTS,
    DST,
    ME,
    OK,
    entry,
    insert,
)
from tests.packet.targets import CPU_PORT, ELECTION_ID, Program, Target
from tests.packet.targets_sentinels import probe, probe_sentinel
from tests.packet.targets_stub import DEADLINE_S, StubClient


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
