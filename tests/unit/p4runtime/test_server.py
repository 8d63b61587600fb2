"""The server where it differs from bmv2, or does what bmv2 is not asked to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

import grpc
import pytest
from finsy.proto import p4i, p4r

from controller.p4rt import Schema, SwitchAddress
from controller.program import CloneSession, TableEntry
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerError, ServerThread
from softswitch.p4runtime.sessions import PACKET_IN_QUEUE
from tests.packet.targets import Program
from tests.packet.targets_sentinels import probe
from tests.packet.targets_stub import DEADLINE_S, StreamEndedError, StubClient
from tests.unit.p4runtime.conftest import Rack

OK, ALREADY_EXISTS, PERMISSION_DENIED, UNIMPLEMENTED = 0, 6, 7, 12
ME = 7
ACTIONS = p4r.SetForwardingPipelineConfigRequest


@pytest.fixture
def schema() -> Schema:
    return Schema(probe())


@pytest.fixture
def client(rack: Rack) -> Iterator[StubClient]:
    """A bare client, primary of the first device, which has no pipeline yet."""
    with rack.client() as client:
        assert client.stream().become(ME) == (OK, ME)
        yield client


def push(
    client: StubClient, action: ACTIONS.Action.ValueType, config: p4r.ForwardingPipelineConfig
) -> None:
    request = ACTIONS(
        device_id=client.device_id,
        election_id=p4r.Uint128(low=ME),
        action=action,
        config=config,
    )
    client.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)


def cookie(client: StubClient) -> int:
    request = p4r.GetForwardingPipelineConfigRequest(device_id=client.device_id)
    reply = client.stub.GetForwardingPipelineConfig(request, timeout=DEADLINE_S)
    value: int = reply.config.cookie.cookie
    return value


def insert(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=entity)


def forward(schema: Schema, dst: int) -> p4r.Update:
    entry = TableEntry.of("forward", {"dst_addr": dst}, "to_port", {"port": 1})
    return insert(schema.entity(entry))


def test_devices_behind_one_server_are_apart(rack: Rack, schema: Schema) -> None:
    with rack.client(0) as one, rack.client(1) as other:
        for client in (one, other):
            assert client.stream().become(ME) == (OK, ME)
            push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
        assert one.write(ME, forward(schema, 1)) == ["OK"]
        assert other.write(ME, forward(schema, 1), forward(schema, 2)) == ["OK", "OK"]
        request = p4r.Entity(table_entry=p4r.TableEntry(table_id=schema.table("forward").id))
        assert len(one.read(request)) == 1
        assert len(other.read(request)) == 2


def test_the_version_is_announced(client: StubClient) -> None:
    reply = client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)
    assert reply.p4runtime_api_version == "1.3.0"


def test_an_unknown_device_is_not_found(rack: Rack) -> None:
    with rack.client() as client:
        with pytest.raises(StreamEndedError, match="device id 99 is not served") as ended:
            client.stream(99).become(1)
        assert ended.value.code is grpc.StatusCode.NOT_FOUND
        client.device_id = 99
        for call in (lambda: client.write(1), client.read, lambda: cookie(client)):
            with pytest.raises(grpc.RpcError) as refused:
                call()
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_stream_is_for_one_device(rack: Rack) -> None:
    with rack.client() as client:
        stream = client.stream()
        assert stream.become(1) == (OK, 1)
        update = p4r.MasterArbitrationUpdate(device_id=2, election_id=p4r.Uint128(low=1))
        stream.send(p4r.StreamMessageRequest(arbitration=update))
        with pytest.raises(StreamEndedError) as ended:
            stream.receive()
        assert ended.value.code is grpc.StatusCode.FAILED_PRECONDITION


def test_every_role_has_its_primary(rack: Rack, schema: Schema) -> None:
    with rack.client() as client:
        default, sdn, backup = client.stream(), client.stream(), client.stream()
        assert default.become(ME) == (OK, ME)
        sdn.bid(ME, role="sdn")
        answer = sdn.receive().arbitration
        assert (answer.status.code, answer.role.name) == (OK, "sdn")
        backup.bid(ME - 1, role="sdn")
        assert backup.notice() == (ALREADY_EXISTS, ME)
        push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
        for role, election_id, may in (
            ("", ME, True),
            ("sdn", ME, True),
            ("sdn", ME - 1, False),
            ("nobody", ME, False),
        ):
            request = p4r.WriteRequest(
                device_id=client.device_id, role=role, election_id=p4r.Uint128(low=election_id)
            )
            if may:
                client.stub.Write(request, timeout=DEADLINE_S)
                continue
            with pytest.raises(grpc.RpcError, match="Not primary") as refused:
                client.stub.Write(request, timeout=DEADLINE_S)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_a_role_may_be_a_number_and_cannot_change(rack: Rack) -> None:
    with rack.client() as client:
        stream = client.stream()
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=1))
        update.role.id = 7
        stream.send(p4r.StreamMessageRequest(arbitration=update))
        assert stream.receive().arbitration.role.id == 7
        update.role.id = 8
        stream.send(p4r.StreamMessageRequest(arbitration=update))
        with pytest.raises(StreamEndedError, match="open another") as ended:
            stream.receive()
        assert ended.value.code is grpc.StatusCode.FAILED_PRECONDITION


def test_a_configuration_of_a_role_is_refused_by_name(rack: Rack) -> None:
    with rack.client() as client:
        stream = client.stream()
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=1))
        update.role.name = "narrow"
        update.role.config.SetInParent()
        stream.send(p4r.StreamMessageRequest(arbitration=update))
        with pytest.raises(StreamEndedError, match="configuration of role 'narrow'") as ended:
            stream.receive()
        assert ended.value.code is grpc.StatusCode.UNIMPLEMENTED


def test_nothing_works_before_a_pipeline(client: StubClient, schema: Schema) -> None:
    for call in (
        lambda: client.write(ME, forward(schema, 1)),
        lambda: client.read(p4r.Entity(table_entry=p4r.TableEntry())),
        lambda: cookie(client),
    ):
        with pytest.raises(grpc.RpcError, match="No forwarding pipeline config") as refused:
            call()
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_verify_changes_nothing(client: StubClient, schema: Schema) -> None:
    push(client, ACTIONS.VERIFY, schema.pipeline)
    with pytest.raises(grpc.RpcError, match="No forwarding pipeline config"):
        cookie(client)


def test_save_then_commit(client: StubClient, schema: Schema) -> None:
    with pytest.raises(grpc.RpcError, match="nothing is saved") as refused:
        push(client, ACTIONS.COMMIT, p4r.ForwardingPipelineConfig())
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    push(client, ACTIONS.VERIFY_AND_SAVE, schema.pipeline)
    with pytest.raises(grpc.RpcError, match="No forwarding pipeline config"):
        cookie(client)
    push(client, ACTIONS.COMMIT, p4r.ForwardingPipelineConfig())
    assert cookie(client) == schema.cookie
    assert client.write(ME, forward(schema, 1)) == ["OK"]


def test_a_push_without_an_action_is_refused(client: StubClient, schema: Schema) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        push(client, ACTIONS.UNSPECIFIED, schema.pipeline)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_refused_pipeline_leaves_the_running_one(client: StubClient, schema: Schema) -> None:
    push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
    client.write(ME, forward(schema, 1))
    foreign = p4r.ForwardingPipelineConfig()
    foreign.CopyFrom(Schema(Program.fresh(probe())).pipeline)
    foreign.p4_device_config = foreign.p4_device_config.replace(b'"mark_to_drop"', b'"explode"')
    with pytest.raises(grpc.RpcError, match="explode") as refused:
        push(client, ACTIONS.VERIFY_AND_COMMIT, foreign)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    foreign.p4_device_config = b"{"
    with pytest.raises(grpc.RpcError) as refused:
        push(client, ACTIONS.VERIFY_AND_COMMIT, foreign)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert cookie(client) == schema.cookie
    assert client.write(ME, forward(schema, 1)) == ["ALREADY_EXISTS"]


def test_p4info_and_json_have_to_agree(client: StubClient, schema: Schema) -> None:
    config = p4r.ForwardingPipelineConfig()
    config.CopyFrom(schema.pipeline)
    config.p4info.tables[0].match_fields[0].bitwidth += 1
    with pytest.raises(grpc.RpcError, match="src_addr") as refused:
        push(client, ACTIONS.VERIFY_AND_COMMIT, config)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    config.CopyFrom(schema.pipeline)
    config.p4info.tables[0].preamble.name = "ProbeIngress.other"
    with pytest.raises(grpc.RpcError, match=r"ProbeIngress\.other") as refused:
        push(client, ACTIONS.VERIFY_AND_COMMIT, config)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_enumerators_that_are_none_are_refused(client: StubClient, schema: Schema) -> None:
    def refused(call: Callable[[], object], text: str) -> None:
        with pytest.raises(grpc.RpcError, match=text) as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    # as a client of a later version of the protocol might send
    config = p4r.ForwardingPipelineConfig()
    config.CopyFrom(schema.pipeline)
    config.p4info.tables[0].match_fields[0].match_type = p4i.MatchField.MatchType.ValueType(43)
    refused(lambda: push(client, ACTIONS.VERIFY_AND_COMMIT, config), "match kind 43")
    refused(lambda: push(client, ACTIONS.Action.ValueType(43), schema.pipeline), "action: 43")
    push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
    update = forward(schema, 1)
    update.type = p4r.Update.Type.ValueType(43)
    assert client.write(ME, update) == ["INVALID_ARGUMENT"]


def test_a_large_read_comes_in_several_messages(client: StubClient, schema: Schema) -> None:
    push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
    request = p4r.Entity()
    request.counter_entry.SetInParent()
    entities = client.read(*[request] * 100)
    assert len(entities) == 1600
    read = p4r.ReadRequest(device_id=1, entities=[request] * 100)
    sizes = [len(reply.entities) for reply in client.stub.Read(read, timeout=DEADLINE_S)]
    assert sizes == [500, 500, 500, 100]


def test_a_truncating_clone_session_is_kept(client: StubClient, schema: Schema) -> None:
    push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
    session = schema.entity(CloneSession(3, ((1, 0),), 64))
    assert client.write(ME, insert(session)) == ["OK"]
    assert client.read(session) == [session]


def test_a_packet_out_without_data_plane_is_answered(client: StubClient, schema: Schema) -> None:
    push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
    backup = client.stream()
    assert backup.become(ME - 1) == (ALREADY_EXISTS, ME)
    backup.send(p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"x")))
    error = backup.receive().error
    assert error.canonical_code == PERMISSION_DENIED
    assert error.packet_out.packet_out.payload == b"x"
    assert backup.become(ME + 1) == (OK, ME + 1)
    backup.send(p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"x")))
    assert backup.receive().error.canonical_code == UNIMPLEMENTED


def test_bad_packet_out_metadata_is_answered(schema: Schema) -> None:
    sent: list[bytes] = []
    device = Device(device_id=1, cpu_port=510)
    server = P4RuntimeServer([device], packet_out=lambda _, packet: sent.append(packet))
    with ServerThread(server) as thread, StubClient(_where(thread.address)) as client:
        stream = client.stream()
        assert stream.become(ME) == (OK, ME)
        push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
        for metadata in (
            p4r.PacketMetadata(metadata_id=9, value=b"\1"),
            p4r.PacketMetadata(metadata_id=1, value=b"\2\0"),
        ):
            packet = p4r.PacketOut(payload=b"x", metadata=[metadata])
            stream.send(p4r.StreamMessageRequest(packet=packet))
            assert stream.receive().error.canonical_code == 3
        stream.send(p4r.StreamMessageRequest())
        assert stream.receive().error.canonical_code == UNIMPLEMENTED
    assert sent == []


def test_device_ids_must_differ() -> None:
    with pytest.raises(ValueError, match="device id 1 is used twice"):
        P4RuntimeServer([Device(device_id=1), Device(device_id=1)])


def test_a_taken_port_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        thread = ServerThread(P4RuntimeServer([Device(device_id=1)], address))
        with pytest.raises(ServerError, match=f"cannot listen on {address}"):
            thread.start()


def _where(address: str) -> SwitchAddress:
    return SwitchAddress("s1", address, 1)


def test_packet_ins_for_a_slow_client_are_dropped_and_counted(schema: Schema) -> None:
    async def flood() -> int:
        device = Device(device_id=1, cpu_port=510)
        async with P4RuntimeServer([device]) as server:
            where = _where(server.address)
            client = await asyncio.to_thread(_primary, where, schema)
            # All on the loop at once: the stream cannot send in between.
            for _ in range(PACKET_IN_QUEUE + 10):
                server.packet_in(1, bytes(2) + b"payload")
            await asyncio.to_thread(client.close)
            return server.packet_ins_dropped(1)

    assert asyncio.run(flood()) == 10


def _primary(where: SwitchAddress, schema: Schema) -> StubClient:
    client = StubClient(where)
    assert client.stream().become(ME) == (OK, ME)
    push(client, ACTIONS.VERIFY_AND_COMMIT, schema.pipeline)
    return client
