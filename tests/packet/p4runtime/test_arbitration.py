"""Who may write: arbitration between clients."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from controller.p4rt import Schema
from tests.packet.p4runtime.messages import (
    ALREADY_EXISTS,
    OK,
    entry,
    insert,
    refused,
)
from tests.packet.targets_sentinels import probe
from tests.packet.targets_stub import DEADLINE_S, StreamEndedError, StubClient


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


def test_a_client_with_a_role_alone_is_primary(client: StubClient, schema: Schema) -> None:
    stream = client.stream()
    stream.bid(5, role="sdn_controller")
    assert stream.notice() == (OK, 5)
    request = p4r.WriteRequest(
        device_id=client.device_id,
        role="sdn_controller",
        election_id=p4r.Uint128(low=5),
        updates=[insert(entry(schema))],
    )
    client.stub.Write(request, timeout=DEADLINE_S)
