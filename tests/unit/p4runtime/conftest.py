"""Software switches behind one P4Runtime server, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from controller.p4rt import SwitchAddress
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread
from tests.packet.targets_stub import StubClient

DEVICES = 4


@dataclass(frozen=True, slots=True)
class Rack:
    """Devices with ids from 1, and where their server listens."""

    devices: tuple[Device, ...]
    switches: tuple[SwitchAddress, ...]

    def client(self, i: int = 0) -> StubClient:
        """Return a bare client to one of the devices."""
        return StubClient(self.switches[i])


@pytest.fixture
def rack() -> Iterator[Rack]:
    devices = tuple(Device(device_id=i + 1) for i in range(DEVICES))
    with ServerThread(P4RuntimeServer(devices)) as server:
        switches = tuple(
            SwitchAddress(f"s{device.device_id}", server.address, device.device_id)
            for device in devices
        )
        yield Rack(devices, switches)
