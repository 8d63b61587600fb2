"""A switch that has just started, and pipelines that are saved, reconciled or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import pytest
from finsy.proto import p4r

from controller.p4rt import Schema
from tests.packet.p4runtime.messages import ME, OK, entry, insert, refused
from tests.packet.targets import Program
from tests.packet.targets_process import (
    Bmv2Target,
    ProcessTarget,
    SoftswitchProcessTarget,
    why_not,
)
from tests.packet.targets_sentinels import probe
from tests.packet.targets_stub import DEADLINE_S, StubClient

PUSH = p4r.SetForwardingPipelineConfigRequest
GET = p4r.GetForwardingPipelineConfigRequest


@pytest.fixture(
    params=[
        SoftswitchProcessTarget,
        pytest.param(Bmv2Target, marks=pytest.mark.bmv2),
    ],
    ids=lambda kind: kind.kind,
)
def fresh(request: pytest.FixtureRequest) -> Iterator[ProcessTarget]:
    """A switch that nobody has pushed a pipeline to."""
    kind: type[ProcessTarget] = request.param
    reason = why_not(kind.command)
    if reason is not None:
        pytest.skip(reason)
    target = kind()
    try:
        yield target
    finally:
        target.close()


@pytest.fixture
def client(fresh: ProcessTarget) -> Iterator[StubClient]:
    """Its primary."""
    with StubClient(fresh.address) as client:
        assert client.stream().become(ME) == (OK, ME)
        yield client


def push(
    client: StubClient, action: PUSH.Action.ValueType, config: p4r.ForwardingPipelineConfig
) -> None:
    request = PUSH(
        device_id=client.device_id,
        election_id=p4r.Uint128(high=ME >> 64),
        action=action,
        config=config,
    )
    client.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)


def code(call: Callable[[], object]) -> str:
    """Return the code that a call is refused with, or OK."""
    try:
        call()
    except grpc.RpcError as error:
        name: str = error.code().name
        return name
    return "OK"


def test_before_a_pipeline(client: StubClient, fresh: ProcessTarget) -> None:
    schema = Schema(probe())
    get = GET(device_id=client.device_id)
    everything = p4r.Entity(table_entry=p4r.TableEntry())
    assert code(lambda: client.write(ME, insert(entry(schema)))) == "FAILED_PRECONDITION"
    assert code(lambda: client.read(everything)) == "FAILED_PRECONDITION"
    asked = code(lambda: client.stub.GetForwardingPipelineConfig(get, timeout=DEADLINE_S))
    assert asked == "FAILED_PRECONDITION"
    unset = code(lambda: push(client, PUSH.UNSPECIFIED, schema.pipeline))
    assert unset == "INVALID_ARGUMENT"
    push(client, PUSH.VERIFY, schema.pipeline)
    # There, a first push of any kind ends the time before: what is asked then gets no answer.
    if fresh.kind != "bmv2":
        assert code(lambda: client.read(everything)) == "FAILED_PRECONDITION"
        assert (
            code(lambda: push(client, PUSH.COMMIT, p4r.ForwardingPipelineConfig()))
            == "FAILED_PRECONDITION"
        )
    push(client, PUSH.VERIFY_AND_COMMIT, schema.pipeline)
    assert client.write(ME, insert(entry(schema))) == ["OK"]
    assert client.read(everything)[0].HasField("table_entry")


def test_only_the_primary_pushes(client: StubClient, fresh: ProcessTarget) -> None:
    schema = Schema(probe())
    request = PUSH(
        device_id=client.device_id,
        election_id=p4r.Uint128(low=1),
        action=PUSH.VERIFY_AND_COMMIT,
        config=schema.pipeline,
    )
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)
    assert refused(caught) == "PERMISSION_DENIED"


def test_a_saved_pipeline_is_committed_later(client: StubClient) -> None:
    first, second = (Schema(Program.fresh(probe())) for _ in range(2))
    push(client, PUSH.VERIFY_AND_COMMIT, first.pipeline)
    assert client.write(ME, insert(entry(first))) == ["OK"]
    push(client, PUSH.VERIFY_AND_SAVE, second.pipeline)
    push(client, PUSH.COMMIT, p4r.ForwardingPipelineConfig())
    reply = client.stub.GetForwardingPipelineConfig(
        GET(device_id=client.device_id, response_type=GET.COOKIE_ONLY), timeout=DEADLINE_S
    )
    assert reply.config.cookie == second.pipeline.cookie
    everything = p4r.Entity(table_entry=p4r.TableEntry(table_id=first.table("forward").id))
    assert client.read(everything) == []


def test_one_off_tools_write_without_an_election(fresh: ProcessTarget) -> None:
    schema = Schema(probe())
    with StubClient(fresh.address) as tool:
        request = PUSH(
            device_id=tool.device_id, action=PUSH.VERIFY_AND_COMMIT, config=schema.pipeline
        )
        tool.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)
        assert tool.write(None, insert(entry(schema))) == ["OK"]
        with pytest.raises(grpc.RpcError) as caught:
            tool.write(1, insert(entry(schema)))
        assert refused(caught) == "PERMISSION_DENIED"
