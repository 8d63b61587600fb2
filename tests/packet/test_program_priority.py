"""Queues of tensors: tickets in IPv4 options, and the window that slides over layers.

Where a packet is queued is read from the counter `queued`, a cell for each priority; every switch
here has eight queues, so a priority that it has not would lose the packet.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from controller.program import Op, Update
from controller.scheduling import Scheduling, tensor_flow
from p4src.constants import Outcome
from tests.packet.program import PARENT_PORT, WORKERS, BluetreeSwitch, Job, route
from tests.packet.program_frames import (
    answer,
    contribution,
    fanned_out,
    is_sound,
    lanes,
    remade,
    routed,
    sum_to_parent,
    summed,
    to_parent,
)
from tests.packet.targets import Target
from traffic.ticket import Ticket, add_ticket, read_ticket

RED = Job(job=1, sources=WORKERS[:1])
OTHER = Job(job=2, sources=WORKERS[:1])
HOST = WORKERS[4]
FLOW_PORT = 9600
FLOW_WINDOW = 1025
NO_OP, END = b"\x01", b"\x00"
RECORD_ROUTE = b"\x07\x07\x04\x0a\x00\x00\x01"
LAYER, ITERATION = 0x9E, 0xDE


def option(kind: int, value: int, length: int = 4) -> bytes:
    """An option of 16 bits, or one that says another length and has it, padded by zeros."""
    body = value.to_bytes(2, "big").ljust(max(length - 2, 0), b"\0")[: max(length - 2, 0)]
    return bytes([kind, length]) + body


def ticket(layer: int, iteration: int = 0) -> bytes:
    return option(LAYER, layer) + option(ITERATION, iteration)


def with_raw_options(frame: bytes, options: bytes) -> bytes:
    """The frame with exactly these option bytes, filled up with the end of options."""
    packet = Ether(frame)
    packet[IP].options = [Raw(options + END * (-len(options) % 4))]
    return remade(packet, ("ihl", "len"))


def plain(dst_port: int = FLOW_PORT, src_port: int = 40_000) -> bytes:
    """Traffic of a parameter server, with nothing of the aggregation protocol."""
    return bytes(
        Ether(src="02:00:00:00:00:02", dst="02:01:00:00:00:01")
        / IP(src=WORKERS[0].ip, dst=HOST.ip, ttl=64)
        / UDP(sport=src_port, dport=dst_port)
        / Raw(bytes(range(50)))
    )


@dataclass
class Queues:
    """A switch whose queues are watched."""

    switch: BluetreeSwitch
    middle: int

    def __post_init__(self) -> None:
        self._before = self._cells()

    def _cells(self) -> list[int]:
        cells = [cell.packets for cell in self.switch.target.counter("queued")]
        cells[self.middle] -= self.switch.sentinels
        return cells

    def place(self, port: int, frame: bytes, leaving: int = 1) -> int:
        """Send a frame, let `leaving` copies come out sound, and say its queue."""
        target = self.switch.target
        target.send(port, frame)
        out = target.collect(at_least=leaving)
        assert len(out) == leaving
        assert all(is_sound(left) for _, left in out)
        now = self._cells()
        placed = [n - before for n, before in zip(now, self._before, strict=True)]
        self._before = now
        assert sum(placed) == 1, placed
        return placed.index(1)

    def tensors(self, tickets: Iterable[tuple[int, int]], job: Job = RED) -> list[int]:
        """The queues of one red contribution after another, tickets (layer, iteration)."""
        source = job.sources[0]
        return [
            self.place(
                source.port,
                with_raw_options(
                    contribution(source, 0, lanes(1), job=job.job, epoch=9), ticket(*each)
                ),
            )
            for each in tickets
        ]


def queues(target: Target, scheduling: Scheduling, *jobs: Job) -> Queues:
    """A switch that holds jobs and schedules; nothing passes its class."""
    switch = BluetreeSwitch(target, *(jobs or (RED, OTHER)))
    target.insert(
        *scheduling.entries(),
        tensor_flow(FLOW_WINDOW, dst_port=FLOW_PORT),
        tensor_flow(FLOW_WINDOW, src_port=FLOW_PORT),
        route(HOST.address, 32, HOST.port, HOST.mac),
    )
    # The sentinels so far were sent before there were classes.
    return Queues(switch, scheduling.middle_queue)


STRICT = Scheduling(queues=8, middle=3, share=0)


def test_the_lowest_layer_so_far_has_the_highest_queue(target: Target) -> None:
    watched = queues(target, STRICT)
    assert watched.tensors([(layer, 1) for layer in (15, 14, 13, 5, 0)]) == [7] * 5
    assert watched.tensors([(layer, 1) for layer in range(10)]) == [7, 6, 5, 4, 3, 2, 1, 0, 0, 0]
    assert watched.tensors([(0xFFFF, 1), (0, 1)]) == [0, 7]


def test_tensors_out_of_order_move_no_window_up(target: Target) -> None:
    watched = queues(target, STRICT)
    order = [10, 12, 8, 11, 9, 8, 15, 7, 14]
    assert watched.tensors([(layer, 5) for layer in order]) == [7, 5, 7, 4, 6, 7, 0, 7, 0]


def test_a_new_iteration_begins_a_new_window(target: Target) -> None:
    watched = queues(target, STRICT)
    assert watched.tensors([(3, 1), (0, 1), (3, 1), (3, 2), (4, 2)]) == [7, 7, 4, 7, 6]
    # One that lags behind has its place in the window of now, and does not move it.
    assert watched.tensors([(5, 1), (0, 1), (4, 2), (3, 2)]) == [5, 7, 6, 7]


def test_iterations_wrap(target: Target) -> None:
    watched = queues(target, STRICT)
    assert watched.tensors([(2, 0xFFFE), (0, 0xFFFE), (2, 0xFFFE)]) == [7, 7, 5]
    assert watched.tensors([(2, 0xFFFF), (0, 0xFFFF), (2, 0xFFFF)]) == [7, 7, 5]
    assert watched.tensors([(2, 0), (0, 0), (2, 0), (2, 0xFFFF), (2, 1)]) == [7, 7, 5, 5, 7]


def test_a_job_that_begins_anew_is_not_late_for_ever(target: Target) -> None:
    """What is 16 iterations behind may be late; what is more is another run of the job."""
    watched = queues(target, STRICT)
    assert watched.tensors([(0, 1000), (2, 984), (2, 983), (3, 983), (2, 984)]) == [7, 5, 7, 6, 7]


def test_two_jobs_do_not_disturb_each_other(target: Target) -> None:
    watched = queues(target, STRICT)
    queued = []
    for layer in (9, 6, 3, 0):
        queued += watched.tensors([(layer, 1)], RED)
        queued += watched.tensors([(layer + 4, 7), (layer + 5, 7)], OTHER)
    assert queued == [7, 7, 6] * 4
    assert watched.tensors([(4, 1)], RED) == [3]
    assert watched.tensors([(5, 7)], OTHER) == [6]


def test_plain_traffic_has_windows_by_its_ports(target: Target) -> None:
    watched = queues(target, STRICT)
    port = WORKERS[0].port

    def place(layer: int, frame: bytes) -> int:
        return watched.place(port, with_raw_options(frame, ticket(layer, 1)))

    assert [place(layer, plain()) for layer in (5, 2, 4)] == [7, 7, 5]
    assert place(6, plain(40_000, FLOW_PORT)) == 3
    assert watched.tensors([(9, 1)]) == [7]
    # No window is known for it: not a tensor.
    assert place(2, plain(FLOW_PORT + 1)) == STRICT.middle_queue
    assert watched.place(port, plain()) == STRICT.middle_queue


@pytest.mark.parametrize("count", range(1, 9))
def test_priorities_stay_within_the_queues(target: Target, count: int) -> None:
    chance = random.Random(count)
    scheduling = Scheduling(
        queues=count, step=count % 3, lead=chance.choice((0, 4)), middle=count // 2, share=0
    )
    watched = queues(target, scheduling)
    drawn = [(chance.choice((0, 1, 5, 12, 40, 0xFFFF)), chance.randrange(3)) for _ in range(25)]
    assert set(watched.tensors(drawn)) <= set(range(count))
    low_to_high = watched.tensors([(layer << scheduling.step, 9) for layer in range(count + 1)])
    assert low_to_high == [*range(count - 1, 0, -1), 0, 0]
    assert watched.place(WORKERS[0].port, plain()) == scheduling.middle_queue


def test_step_width_and_lead(target: Target) -> None:
    watched = queues(target, Scheduling(queues=4, step=1, middle=0, share=0))
    layers = [(layer, 1) for layer in range(9)]
    assert watched.tensors(layers) == [3, 3, 2, 2, 1, 1, 0, 0, 0]
    watched = queues(target, Scheduling(queues=8, width=3, middle=0, share=0))
    assert watched.tensors(layers[:6]) == [7, 6, 5, 0, 0, 0]
    watched = queues(target, Scheduling(queues=4, step=1, lead=7, middle=0, share=0))
    down = [(layer, 1) for layer in range(9, -1, -1)]
    assert watched.tensors(down) == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3]
    # Fewer layers are left than the lead: the window ends at the first.
    assert watched.tensors([(4, 2), (0, 2), (7, 2)]) == [1, 3, 0]


def test_the_controller_can_tune_it_at_any_time(target: Target) -> None:
    watched = queues(target, STRICT)
    assert watched.tensors([(0, 1), (3, 1)]) == [7, 4]
    changed = Scheduling(queues=6, step=1, middle=3, share=0)
    target.write([Update(Op.MODIFY, entry) for entry in changed.entries()])
    assert watched.tensors([(0, 1), (3, 1)]) == [5, 4]


WHOLE = {
    "a ticket": (ticket(2, 1), 5),
    "the iteration first": (option(ITERATION, 1) + option(LAYER, 2), 5),
    "a no-op before": (NO_OP + ticket(2, 1), 5),
    "options before and after": (RECORD_ROUTE + ticket(2, 1) + RECORD_ROUTE + NO_OP, 5),
    "options between": (option(LAYER, 2) + RECORD_ROUTE + option(ITERATION, 1), 5),
    "forty bytes": (NO_OP * 31 + ticket(2, 1) + NO_OP, 5),
    "ended before the ticket": (NO_OP + END + ticket(2, 1), 3),
    "ended after it": (ticket(2, 1) + END + b"\xff\xff\xff", 5),
    "the last layer given": (option(LAYER, 7) + ticket(2, 1), 5),
    "no layer": (option(ITERATION, 1), 3),
    "no options that mean anything": (NO_OP * 40, 3),
    "another option": (RECORD_ROUTE, 3),
    "another experiment": (option(30, 2) + option(94, 1), 3),
}


@pytest.mark.parametrize("name", WHOLE)
def test_options_well_formed(target: Target, name: str) -> None:
    options, queue = WHOLE[name]
    watched = queues(target, STRICT)
    watched.tensors([(0, 1)])
    source = RED.sources[0]
    frame = with_raw_options(contribution(source, 0, lanes(1), epoch=9), options)
    assert watched.place(source.port, frame) == queue
    # Whatever is in them, options travel as they came, and so does the message.
    watched.switch.outcomes()
    watched.switch.check(source.port, frame, Outcome.FORWARDED, to_parent(frame))


NO_LENGTH = {
    "layer": ticket(2, 1)[:-4] + NO_OP * 3 + bytes([LAYER]),
    "iteration": ticket(2, 1) + NO_OP * 3 + bytes([ITERATION]),
    "another": ticket(2, 1) + NO_OP * 3 + b"\x07",
}
WRONG_LENGTHS = (0, 1, 2, 3, 5, 6, 8)


def test_void_tickets(target: Target) -> None:
    """Options that are not well formed, wherever, are the middle class and never an error."""
    voids = [
        *NO_LENGTH.values(),
        *(option(LAYER, 2, n) + option(ITERATION, 1) for n in WRONG_LENGTHS),
        *(option(LAYER, 2) + option(ITERATION, 1, n) for n in WRONG_LENGTHS),
        option(LAYER, 2)[:-1] + b"\x02" + bytes([7, 41]) + NO_OP * 2,
        ticket(2, 1) + bytes([7, 0]),
        ticket(2, 1) + bytes([7, 1]) + NO_OP * 2,
        ticket(2, 1) + bytes([7, 5]) + NO_OP * 2,
        ticket(2, 1) + bytes([7, 255]) + NO_OP * 2,
        NO_OP * 2 + bytes([LAYER, 4]),
        NO_OP * 36 + bytes([LAYER, 5, 0, 2]),
    ]
    watched = queues(target, STRICT)
    watched.tensors([(0, 1)])
    source = RED.sources[0]
    for options in voids:
        frame = with_raw_options(contribution(source, 0, lanes(1), epoch=9), options)
        assert watched.place(source.port, frame) == STRICT.middle_queue, options.hex()
    assert watched.tensors([(2, 1)]) == [5]


def test_options_cut_off_are_malformed(target: Target) -> None:
    watched = queues(target, STRICT)
    source = RED.sources[0]
    whole = with_raw_options(contribution(source, 0, lanes(1), epoch=9), ticket(2, 1))
    watched.switch.outcomes()
    for length in range(14 + 20, 14 + 28):
        watched.switch.check(source.port, whole[:length], Outcome.MALFORMED)
    assert watched.tensors([(9, 1)]) == [7]


def test_only_what_is_accepted_moves_a_window(target: Target) -> None:
    watched = queues(target, STRICT)
    source = RED.sources[0]
    watched.tensors([(9, 1)])
    foreign = with_raw_options(contribution(WORKERS[1], 0, lanes(1), epoch=9), ticket(0, 1))
    watched.switch.outcomes()
    watched.switch.check(source.port, foreign, Outcome.UNREGISTERED)
    expired = Ether(with_raw_options(contribution(source, 0, lanes(1), epoch=9), ticket(0, 1)))
    expired[IP].ttl = 1
    watched.switch.check(source.port, remade(expired), Outcome.TTL_EXPIRED)
    assert watched.tensors([(9, 1), (10, 1)]) == [7, 6]


def test_sums_carry_the_ticket_of_the_last_message(target: Target) -> None:
    job = Job(job=1, sources=WORKERS[:2])
    first, second = job.sources
    watched = queues(target, STRICT, job)
    values = (lanes(1), lanes(2))
    absorbed = with_raw_options(contribution(first, 0, values[0]), ticket(4, 1))
    watched.switch.outcomes()
    watched.switch.check(first.port, absorbed, Outcome.ABSORBED)
    frame = with_raw_options(contribution(second, 0, values[1]), RECORD_ROUTE + ticket(6, 1))
    port, out = sum_to_parent(frame, job, summed(*values))
    watched.switch.check(second.port, frame, Outcome.EMITTED, (port, out))
    assert read_ticket(out) == Ticket(6, 1)
    # The absorbed tensor has moved the window, although it needed no queue.
    watched = Queues(watched.switch, STRICT.middle_queue)
    again = with_raw_options(contribution(second, 0, values[1]), ticket(6, 1))
    assert watched.place(second.port, again) == 5


def test_answers_are_scheduled_too(target: Target) -> None:
    job = Job(job=1, sources=WORKERS[:3])
    watched = queues(target, STRICT, job)
    result = with_raw_options(answer(0, lanes(1)), ticket(4, 1))
    assert watched.place(PARENT_PORT, result, leaving=3) == 7
    result = with_raw_options(answer(0, lanes(1)), ticket(6, 1))
    assert watched.place(PARENT_PORT, result, leaving=3) == 5
    watched.switch.outcomes()
    watched.switch.check_all(
        [(PARENT_PORT, result)], {Outcome.FANNED_OUT: 1}, fanned_out(result, job.sources)
    )


def test_what_is_no_tensor_cannot_starve(target: Target) -> None:
    """For every four tensors above the middle class one other packet passes them, a port each."""
    queues(target, Scheduling(queues=8, middle=3, share=4))

    def placed(*frames: bytes) -> list[int]:
        before = [cell.packets for cell in target.counter("queued")]
        for frame in frames:
            target.send(WORKERS[0].port, frame)
        assert len(target.collect(at_least=len(frames))) == len(frames)
        after = [cell.packets for cell in target.counter("queued")]
        return [b - a for a, b in zip(before, after, strict=True)]

    def tensor(layer: int) -> bytes:
        frame = contribution(RED.sources[0], 0, lanes(1), epoch=9)
        return with_raw_options(frame, ticket(layer, 1))

    other = plain(53)
    assert placed(other, other)[4:] == [0, 0, 0, 0]
    # Three above the middle class, and one in the lowest: nothing passes, sentinels neither.
    assert placed(tensor(0), tensor(1), tensor(2), tensor(9), other)[4:] == [0, 1, 1, 1]
    # The fourth. One packet passes on each of the eight ports: to HOST's, the first of the two.
    assert placed(tensor(0), other, other)[4:] == [0, 0, 0, 1 + 8]
    assert placed(other, other)[4:] == [0, 0, 0, 0]


def test_without_settings_all_is_queue_0(target: Target) -> None:
    """As on a switch that was started with one queue; nothing is counted."""
    switch = BluetreeSwitch(target, RED)
    source = RED.sources[0]
    frame = with_raw_options(contribution(source, 0, lanes(1), epoch=9), ticket(0, 1))
    switch.check(source.port, frame, Outcome.FORWARDED, to_parent(frame))
    assert {cell.packets for cell in target.counter("queued")} == {0}


def test_the_ticketer_agrees_with_the_switch(target: Target) -> None:
    """The product's frames: of the protocol and of a parameter server, before other options too."""
    watched = queues(target, STRICT)
    source = RED.sources[0]
    watched.tensors([(1, 2)])
    for bare in (
        contribution(source, 0, lanes(1), epoch=9),
        with_raw_options(contribution(source, 0, lanes(1), epoch=9), RECORD_ROUTE),
    ):
        frame = add_ticket(bare, Ticket(layer=3, iteration=2))
        assert is_sound(frame)
        assert watched.place(source.port, frame) == 5
    frame = add_ticket(plain(), Ticket(layer=3, iteration=2))
    assert watched.place(source.port, frame) == 7
    watched.switch.outcomes()
    expected = routed(frame, HOST.port, HOST.mac)
    watched.switch.check(source.port, frame, Outcome.ROUTED, expected)
    assert len(frame) == len(plain()) + 8
