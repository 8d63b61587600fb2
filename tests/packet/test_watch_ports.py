"""A member that watches a port is chosen only while the port's link is up.

On softswitch as a process; bmv2's simple_switch_grpc 1.15 keeps choosing such members. The program
is that of tests/programs/control.p4.
"""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator

import pytest
from finsy.proto import p4r

from tests.packet.p4runtime.control_messages import (
    action,
    entry,
    member,
    one_shot,
    to_group,
    updates,
)
from tests.packet.p4runtime.control_messages import group as group_of
from tests.packet.switch_process import wait_for
from tests.packet.targets import ELECTION_ID
from tests.packet.targets_process import SoftswitchProcessTarget, why_not
from tests.packet.targets_sentinels import control, control_sentinel
from tests.packet.targets_stub import StubClient

IN, STAYS, GOES = 1, 2, 3
DST = 0x02_00_00_00_00_05
GROUP = 9
PATIENCE_S = 0.2


class RawSoftswitch(SoftswitchProcessTarget):
    """A switch whose frames are seen one by one: a port that is down lets no sentinel through."""

    def exchange_one(self, frame: bytes) -> tuple[int, bytes] | None:
        """Send a frame in at IN, and return what comes out first, if anything does."""
        self._inject(IN, frame)
        try:
            return self._receive(PATIENCE_S)
        except OSError as error:
            if error.errno != errno.ENETDOWN:
                raise
            return None  # the socket of a link that went down says so once

    def set_link(self, port: int, state: str) -> None:
        """Set the far end of a port's link up or down: the switch's end has a carrier or not."""
        name = self._links.host_end[port]
        subprocess.run(["ip", "link", "set", name, state], check=True)


@pytest.fixture
def switch() -> Iterator[RawSoftswitch]:
    reason = why_not(RawSoftswitch.command)
    if reason is not None:
        pytest.skip(reason)
    target = RawSoftswitch()
    try:
        target.push(control(), control_sentinel())
        yield target
    finally:
        target.close()


def frame(source: int) -> bytes:
    return DST.to_bytes(6) + source.to_bytes(6) + b"\x88\xb6" + bytes(46)


def group() -> list[p4r.Update]:
    """An entry that chooses between two ports, each watched by its member."""
    made = group_of(GROUP, [(STAYS, 1), (GOES, 1)])
    for part in made.action_profile_group.members:
        part.watch_port = bytes([part.member_id])
    return updates(
        ("insert", member(STAYS, action(port=STAYS))),
        ("insert", member(GOES, action(port=GOES))),
        ("insert", made),
        ("insert", entry("balanced", DST, to_group(GROUP))),
    )


def set_of_one_shot() -> list[p4r.Update]:
    """The same as a one-shot set."""
    does = one_shot((action(port=STAYS), 1), (action(port=GOES), 1))
    for part, port in zip(
        does.action_profile_action_set.action_profile_actions, (STAYS, GOES), strict=True
    ):
        part.watch_port = bytes([port])
    return updates(("insert", entry("balanced", DST, does)))


@pytest.mark.parametrize("wanted", [group, set_of_one_shot], ids=["group", "one-shot"])
def test_a_member_goes_and_comes_with_its_port(switch: RawSoftswitch, wanted: object) -> None:
    assert callable(wanted)
    with StubClient(switch.address) as client:
        written = wanted()
        assert client.write(ELECTION_ID, *written) == ["OK"] * len(written)
    goes = next(
        source
        for source in range(1, 64)
        if switch.exchange_one(frame(source)) == (GOES, frame(source))
    )

    def leaves_by(port: int) -> bool | None:
        return True if switch.exchange_one(frame(goes)) == (port, frame(goes)) else None

    switch.set_link(GOES, "down")
    assert wait_for(lambda: leaves_by(STAYS), switch.evidence)
    switch.set_link(GOES, "up")
    assert wait_for(lambda: leaves_by(GOES), switch.evidence)
