"""A packet between ingress and egress: what waits in a queue, and what leaves it.

v1model runs egress after the queue, with the queue's metadata. A device therefore runs a packet in
one step (`Device.process`), or in two: `Device.enqueue` runs ingress and replication and gives the
copies, each with the port and the priority whose queue it belongs to; `Device.dequeue` runs the
egress of one of them once it has waited its turn. What queues them is the caller's: a link of a
simulated network on its clock, or a process with `softswitch.queues`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from softswitch.state import State

MAX_PASSES = 256
"""How often a packet may pass again (resubmit, recirculate, egress clone) before it is dropped."""

_Egress = Callable[..., None]
_BEFORE_REST = 9


@dataclass(frozen=True, slots=True)
class QueuedPacket:
    """A copy that has left ingress for the queue `priority` of `port`.

    `length`: bytes of the packet as it came in; egress may change it. `enqueued_us`: the `now_us`
    of the step that made it. `came_by`: the port that it came in by. `passes` counts how often it,
    or what it is a copy of, passed again.
    """

    port: int
    priority: int
    length: int
    enqueued_us: int
    came_by: int
    passes: int
    egress: _Egress
    arguments: tuple[object, ...]
    state: State


@dataclass(frozen=True, slots=True)
class Departure:
    """What egress made of a queued packet.

    `frame`: what leaves by the packet's port, None if egress dropped or recirculated it. `queued`:
    copies made by egress clones and by recirculation; they belong into queues like any other.
    """

    frame: bytes | None
    queued: tuple[QueuedPacket, ...]


def holder(egress: _Egress, priority_at: int | None) -> _Egress:
    """A function with the arguments of `egress` that queues them: see `softswitch.codegen`.

    It appends a QueuedPacket to `out`, or counts the packet in the state if no queue has its
    priority.
    """

    at = None if priority_at is None else priority_at - _BEFORE_REST

    def hold(
        state: State,
        out: list[QueuedPacket],
        came_by: int,
        now: int,
        port: int,
        rid: int,
        instance_type: int,
        cutoff: int,
        length: int,
        *rest: object,
    ) -> None:
        priority = 0 if at is None else rest[at]
        assert isinstance(priority, int)
        if priority >= state.queues:
            state.no_queue(priority)
            return
        arguments = (rid, instance_type, cutoff, length, *rest)
        out.append(
            QueuedPacket(
                port, priority, length, now, came_by, state.passes, egress, arguments, state
            )
        )

    return hold


def run(
    ingress: Callable[..., None], state: State, port: int, data: bytes, now_us: int
) -> list[tuple[int, bytes]]:
    """Run a packet to its end, in one step."""
    out: list[tuple[int, bytes]] = []
    state.now_us = now_us
    ingress(state, out, port, data, now_us, 0, ())
    if state.later:
        state.passes = 0
        _pass_again(state)
    return out


def enqueue(
    ingress: Callable[..., None], state: State, port: int, data: bytes, now_us: int
) -> list[QueuedPacket]:
    """Run ingress, resubmissions too; the copies in the order in which they are queued."""
    out: list[QueuedPacket] = []
    state.now_us = now_us
    state.passes = 0
    ingress(state, out, port, data, now_us, 0, ())
    if state.later:
        _pass_again(state)
    return out


def dequeue(packet: QueuedPacket, now_us: int, enq_qdepth: int, deq_qdepth: int) -> Departure:
    """Run the egress of a packet that has waited."""
    state = packet.state
    out: list[tuple[int, bytes] | QueuedPacket] = []
    state.now_us = now_us
    state.passes = packet.passes
    since = packet.enqueued_us
    state.waited = (since, enq_qdepth, now_us - since, deq_qdepth, packet.priority)
    try:
        packet.egress(state, out, packet.came_by, now_us, packet.port, *packet.arguments)
    finally:
        state.waited = None
    frame = None
    if out:
        left = out.pop()
        assert isinstance(left, tuple)
        frame = left[1]
    if state.later:
        _pass_again(state)
    return Departure(frame, tuple(copy for copy in out if isinstance(copy, QueuedPacket)))


def _pass_again(state: State) -> None:
    """Run what waits for another pass; its copies go where those of the first pass went."""
    while state.later and state.passes < MAX_PASSES:
        state.passes += 1
        step, arguments = state.later.popleft()
        step(*arguments)
    state.later.clear()
