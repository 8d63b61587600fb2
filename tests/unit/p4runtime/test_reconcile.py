"""RECONCILE_AND_COMMIT under traffic: no packet is dropped, none is counted twice or not at all."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from finsy.proto import p4r

from controller.p4rt import BlockingFleet, Schema, SwitchAddress, connect_blocking
from controller.program import Op, TableEntry, Update
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread
from tests.packet.targets import Program
from tests.packet.targets_sentinels import probe
from tests.packet.targets_stub import DEADLINE_S, StubClient

PUSHES = 25
DST = 0x02_00_00_00_00_01
FRAME = DST.to_bytes(6) + bytes(6) + b"\x88\xb5" + bytes(46)
ACTIONS = p4r.SetForwardingPipelineConfigRequest


class Traffic:
    """Frames through a device, one after the other, in a thread of their own."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stop, self._ran = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0
        self.astray: list[list[tuple[int, bytes]]] = []

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(DEADLINE_S)

    def go_on(self) -> None:
        """Return when more frames have run."""
        self._ran.clear()
        assert self._ran.wait(DEADLINE_S)

    def _run(self) -> None:
        while not self._stop.is_set():
            out = self._device.process(1, FRAME)
            self.sent += 1
            if out != [(2, FRAME)]:
                self.astray.append(out)
            self._ran.set()


@pytest.fixture
def device() -> Device:
    return Device(device_id=1)


@pytest.fixture
def address(device: Device) -> Iterator[SwitchAddress]:
    with ServerThread(P4RuntimeServer([device])) as server:
        yield SwitchAddress("s", server.address, 1)


@pytest.fixture
def fleet(address: SwitchAddress) -> Iterator[BlockingFleet]:
    with connect_blocking([address], Program.fresh(probe()), election_id=1) as fleet:
        fleet.push()
        entry = TableEntry.of("forward", {"dst_addr": DST}, "to_port", {"port": 2})
        fleet.write("s", [Update(Op.INSERT, entry)])
        yield fleet


def test_packets_and_counters_do_not_notice(
    device: Device, address: SwitchAddress, fleet: BlockingFleet
) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that pushes fall into the middle of packets
    try:
        with StubClient(address) as client, Traffic(device) as traffic:
            for _ in range(PUSHES):
                config = Schema(Program.fresh(probe())).pipeline
                request = ACTIONS(
                    device_id=1,
                    election_id=p4r.Uint128(low=1),
                    action=ACTIONS.RECONCILE_AND_COMMIT,
                    config=config,
                )
                client.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)
                traffic.go_on()
    finally:
        sys.setswitchinterval(interval)
    assert traffic.astray == []
    assert traffic.sent > PUSHES
    assert fleet.counter("s", "arrived")[1].packets == traffic.sent
    (counted,) = fleet.direct_counters("s", "forward").values()
    assert counted.packets == traffic.sent
