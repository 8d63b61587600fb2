"""A target that runs the probe program, and bare clients of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controller.p4rt import Schema
from tests.packet.p4runtime.messages import ME, OK
from tests.packet.targets import Target
from tests.packet.targets_sentinels import probe, probe_sentinel
from tests.packet.targets_stub import StubClient


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
