"""What the server tells unasked, and RECONCILE_AND_COMMIT, on a switch without ports."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import p4r

from controller.p4rt import Schema, SwitchAddress
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread
from tests.packet.p4runtime.control_messages import (
    action,
    digest,
    entry,
    group,
    member,
    meter,
    to_group,
    updates,
    value_set,
)
from tests.packet.targets import Program
from tests.packet.targets_sentinels import control, probe
from tests.packet.targets_stub import DEADLINE_S, Stream, StubClient

ACTIONS = p4r.SetForwardingPipelineConfigRequest
ME = 7
SRC = 0x99
SECOND_US, SECOND_NS = 10**6, 10**9


@pytest.fixture
def device() -> Device:
    return Device(device_id=1)


@pytest.fixture
def client(device: Device) -> Iterator[StubClient]:
    with (
        ServerThread(P4RuntimeServer([device])) as server,
        StubClient(SwitchAddress("s", server.address, 1)) as client,
    ):
        yield client


@pytest.fixture
def session(client: StubClient) -> Stream:
    """The stream of the primary; the control program runs."""
    stream = client.stream()
    assert stream.become(ME)[0] == 0
    push(client, Schema(control()).pipeline)
    return stream


def push(
    client: StubClient,
    config: p4r.ForwardingPipelineConfig,
    how: ACTIONS.Action.ValueType = ACTIONS.VERIFY_AND_COMMIT,
) -> None:
    request = ACTIONS(device_id=1, election_id=p4r.Uint128(low=ME), action=how, config=config)
    client.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)


def write(client: StubClient, *steps: tuple[str, p4r.Entity]) -> None:
    assert client.write(ME, *updates(*steps)) == ["OK"] * len(steps)


def frame(source: int = SRC, ether_type: int = 0x88B6) -> bytes:
    header = bytes(6) + source.to_bytes(6, "big") + ether_type.to_bytes(2, "big")
    return header.ljust(60, b"\0")


def test_a_digest_that_nobody_wants_is_dropped(
    device: Device, client: StubClient, session: Stream
) -> None:
    device.process(1, frame(source=1))
    write(client, ("insert", digest()))
    device.process(1, frame(source=2))
    (data,) = session.receive().digest.data
    assert data.struct.members[0].bitstring == b"\2"


def test_a_push_forgets_what_digests_were_wanted(client: StubClient, session: Stream) -> None:
    write(client, ("insert", digest()))
    push(client, Schema(Program.fresh(control())).pipeline)
    write(client, ("insert", digest()))


def test_an_idle_entry_is_told_with_its_metadata(
    device: Device, client: StubClient, session: Stream
) -> None:
    def change(message: p4r.TableEntry) -> None:
        message.idle_timeout_ns = 2 * SECOND_NS
        message.metadata = b"mine"

    wanted = entry("aged", SRC, action(port=1), change)
    write(client, ("insert", wanted))
    device.process(1, frame(), now_us=SECOND_US)
    device.age(2 * SECOND_US)
    device.age(4 * SECOND_US)
    notice = session.receive().idle_timeout_notification
    wanted.table_entry.ClearField("action")
    assert list(notice.table_entry) == [wanted.table_entry]
    assert notice.timestamp > 0


def everything() -> list[tuple[str, p4r.Entity]]:
    """Something of all that survives a reconciling push; the types are those of its writing."""
    return [
        ("insert", member(1, action(port=3))),
        ("insert", group(2, [(1, 2)])),
        ("insert", entry("balanced", 5, to_group(2))),
        ("insert", entry("aged", 6, action(port=4), lambda e: setattr(e, "metadata", b"m"))),
        ("modify", meter(3, (1, 2, 3, 4))),
        ("modify", value_set(9, 10)),
        ("insert", digest(max_list_size=4)),
    ]


def held(client: StubClient) -> list[p4r.Entity]:
    asked = [
        p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
        p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
        p4r.Entity(table_entry=p4r.TableEntry()),
        p4r.Entity(meter_entry=p4r.MeterEntry()),
        p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
        p4r.Entity(digest_entry=p4r.DigestEntry()),
    ]
    return client.read(*asked)


def test_a_reconciling_push_keeps_what_was_written(client: StubClient, session: Stream) -> None:
    write(client, *everything())
    before = held(client)
    assert len(before) > len(everything())
    config = Schema(Program.fresh(control())).pipeline
    push(client, config, ACTIONS.RECONCILE_AND_COMMIT)
    assert held(client) == before
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    reply = client.stub.GetForwardingPipelineConfig(request, timeout=DEADLINE_S)
    assert reply.config.cookie == config.cookie


def test_a_reconciling_push_that_cannot_changes_nothing(
    client: StubClient, session: Stream
) -> None:
    write(client, *everything())
    before = held(client)
    with pytest.raises(grpc.RpcError, match="reconcil") as refused:
        push(client, Schema(probe()).pipeline, ACTIONS.RECONCILE_AND_COMMIT)
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert held(client) == before


def test_a_first_push_may_reconcile(client: StubClient) -> None:
    assert client.stream().become(ME)[0] == 0
    push(client, Schema(control()).pipeline, ACTIONS.RECONCILE_AND_COMMIT)
    write(client, *everything())
