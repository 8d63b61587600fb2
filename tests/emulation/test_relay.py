"""The relay on real veth pairs: the n-th frame meets the fate that the seed gives it."""

from __future__ import annotations

import os
import pickle
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from softswitch.ports.interface import Interface, open_socket
from softswitch.ports.pair import create_pair, delete_pair
from softswitch.ports.ring import Ring
from softswitch.ports.sender import Sender
from topologies.mininet_plan import RELAY_READY, Half, RelayPlan
from topologies.relay import faults_of

FRAMES = 400
BATCH = 50
"""Frames at a time: no ring on the way is full."""
PATIENCE_S = 2.0

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for veth pairs")


class _Wire:
    """A link of two veth pairs with a relay between them, and its two outer ends."""

    def __init__(self, stack: ExitStack, loss: float, duplicate: float, reorder: float) -> None:
        token = secrets.token_hex(3)
        halves, self.senders, self.rings = [], [], []
        for which, node in enumerate("ab"):
            outer, inner = f"br{token}o{which}", f"br{token}i{which}"
            create_pair(outer, inner)
            stack.callback(delete_pair, outer)
            halves.append(Half(inner, node, which))
            sock = stack.enter_context(open_socket(outer))
            self.rings.append(Ring(sock, Interface.look_at(outer)))
            stack.callback(self.rings[-1].close)
            self.senders.append(Sender(sock))
        self.plan = RelayPlan(((halves[0], halves[1]),), loss, duplicate, reorder, seed=7)
        self.outer = [f"br{token}o{which}" for which in range(2)]
        relay = self.relay = subprocess.Popen(
            [sys.executable, "-m", "topologies.relay"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        stack.callback(relay.wait, 10)
        assert relay.stdin is not None
        assert relay.stdout is not None
        stack.callback(relay.stdout.close)
        stack.callback(relay.stdin.close)
        relay.stdin.write(pickle.dumps(self.plan))
        relay.stdin.flush()
        assert relay.stdout.readline() == RELAY_READY

    def carry(self, source: int, count: int) -> list[int]:
        """Numbers of the frames that come out, when 0, 1, ... go in at an end."""
        head = bytes(12) + b"\x88\xb5"
        fates = self.fates(source)
        numbers: list[int] = []
        expected = 0
        for first in range(0, count, BATCH):
            batch = range(first, min(first + BATCH, count))
            self.senders[source].send([head + n.to_bytes(4, "big") + bytes(46) for n in batch])
            expected += sum(len(next(fates)) for _ in batch)
            deadline = time.monotonic() + PATIENCE_S
            while len(numbers) < expected and time.monotonic() < deadline:
                frames = self.rings[1 - source].receive(BATCH)
                numbers += [int.from_bytes(frame[14:18], "big") for frame in frames]
        return numbers

    def _way(self, source: int) -> tuple[Half, Half]:
        one, other = self.plan.links[0]
        return (one, other) if source == 0 else (other, one)

    def fates(self, source: int) -> Iterator[tuple[int, ...]]:
        """The fates of frames that go in at an end."""
        faults = faults_of(self.plan, *self._way(source))
        while True:
            yield faults.fate()


@pytest.mark.parametrize("source", [0, 1])
def test_each_frame_meets_its_fate(source: int) -> None:
    with ExitStack() as stack:
        wire = _Wire(stack, loss=0.2, duplicate=0.2, reorder=0.2)
        arrived = wire.carry(source, FRAMES)
        fates = wire.fates(source)
        expected = [n for n in range(FRAMES) for _ in next(fates)]
    assert sorted(arrived) == expected
    assert arrived != expected  # some were overtaken
    assert len(set(arrived)) < FRAMES


def test_without_reordering_frames_keep_their_order() -> None:
    with ExitStack() as stack:
        wire = _Wire(stack, loss=0.3, duplicate=0.0, reorder=0.0)
        arrived = wire.carry(0, FRAMES)
        fates = wire.fates(0)
        assert arrived == [n for n in range(FRAMES) if next(fates)]


def test_the_relay_says_which_interface_is_missing() -> None:
    name = f"br{secrets.token_hex(3)}"
    plan = RelayPlan(((Half(name, "a", 0), Half(name, "b", 0)),), 0.5, 0, 0, 0)
    done = subprocess.run(
        [sys.executable, "-m", "topologies.relay"],
        input=pickle.dumps(plan),
        capture_output=True,
    )
    assert done.returncode != 0
    assert name in done.stderr.decode()


def test_a_relay_whose_interface_goes_is_idle() -> None:
    """Told once that it is gone, it does not ask again and again."""
    with ExitStack() as stack:
        wire = _Wire(stack, 0, 0, 0)
        delete_pair(wire.outer[0])
        used = _cpu_seconds(wire.relay.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            wire.relay.wait(1.0)
        assert _cpu_seconds(wire.relay.pid) - used < 0.2


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
