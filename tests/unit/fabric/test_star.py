"""Workers and a destination over a network that loses, duplicates and reorders: all sums right."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.fabric.star import Job, star
from tests.unit.traffic.hosts import DESTINATION_IP, SWITCH_MAC, whole_numbers, worker_config
from topologies.fabric import Fabric, LinkSpec, StopReason
from topologies.fabric.link import Direction
from traffic.destination import Verdict
from traffic.endpoint import Op
from traffic.icmp import Echo, decode_echo, echo_request
from traffic.message import decode_frame, ip_bytes
from traffic.workloads import DigitsTraining, synthetic, train_without_network

SECOND = 10**9
CLEAN = LinkSpec(rate=10**9, delay=1000)
ROUGH = LinkSpec(rate=10**9, delay=1000, loss=0.1, duplicate=0.1, reorder=0.2)


def finish(fabric: Fabric, deadline: int = 100 * SECOND) -> None:
    result = fabric.run(until=fabric.all_finished, deadline=deadline)
    assert result.reason is StopReason.DONE, fabric.unfinished()


def check(job: Job, *, with_results: bool = True) -> None:
    assert (job.destination.sums == job.expected).all()
    assert job.destination.overflowed == frozenset()
    for worker in job.workers:
        assert worker.done
        assert not worker.failed
        if with_results:
            assert (worker.results == job.expected).all()


def test_without_mishaps_every_message_is_sent_once() -> None:
    fabric, (job,) = star([synthetic(8, 50, seed=1)], CLEAN)
    finish(fabric)
    check(job)
    assert job.destination.stats.frames == {
        Verdict.COUNTED.value: 7 * 50,
        Verdict.COMPLETING.value: 50,
    }
    for worker in job.workers:
        counters = worker.counters
        assert (counters.sent, counters.resent, counters.answered) == (50, 0, 50)
        assert counters.ignored == {}
    assert fabric.direction("s", "d").counters.sent == 8 * 50
    assert fabric.direction("d", "s").counters.sent == 50


@pytest.mark.parametrize("op", Op)
@pytest.mark.parametrize("seed", range(4))
def test_every_sum_is_right_under_loss_duplication_and_reordering(op: Op, seed: int) -> None:
    jobs = [synthetic(6, 100, seed=100 * seed + number) for number in range(2)]
    fabric, made = star(jobs, ROUGH, seed, op=op, window=8)
    finish(fabric)
    for job in made:
        check(job, with_results=op is Op.ALLREDUCE)
        assert sum(worker.counters.resent for worker in job.workers) > 0
        assert job.destination.stats.resent > 0
        heard = sum(job.destination.stats.frames.values())
        assert heard > 6 * 100


@settings(max_examples=25)
@given(
    st.integers(1, 5),
    st.integers(1, 12),
    st.integers(1, 9),
    st.floats(0, 0.4),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_any_network_gives_the_right_sums(
    workers: int,
    chunks: int,
    window: int,
    loss: float,
    duplicate: float,
    reorder: float,
    seed: int,
) -> None:
    spec = LinkSpec(rate=10**8, loss=loss, duplicate=duplicate, reorder=reorder)
    values = whole_numbers(workers, chunks, seed)
    fabric, (job,) = star([values], spec, seed, window=window)
    finish(fabric)
    check(job)


def test_every_frame_ends_in_exactly_one_counter() -> None:
    fabric, (job,) = star([synthetic(5, 60, seed=2)], ROUGH, seed=2)
    finish(fabric)
    fabric.run()
    arrived = fabric.direction("s", "d").counters.delivered
    assert sum(job.destination.stats.frames.values()) == arrived
    for rank, worker in enumerate(job.workers):
        counters = worker.counters
        arrived = fabric.direction("s", f"w{rank}").counters.delivered
        assert counters.answered + sum(counters.ignored.values()) == arrived
        sent = fabric.direction(f"w{rank}", "s").counters.offered
        assert counters.sent + counters.resent == sent


def test_windows_are_never_exceeded_on_the_wire() -> None:
    window = 5
    fabric, (job,) = star([synthetic(4, 80, seed=3)], ROUGH, seed=3, window=window)
    in_flight: dict[str, set[int]] = {f"w{rank}": set() for rank in range(4)}
    largest: Counter[str] = Counter()

    def observe(now: int, what: str, direction: Direction, frame: bytes) -> None:
        name = direction.source.name
        if what == "sent" and name in in_flight:
            in_flight[name].add(decode_frame(frame).chunk)
            largest[name] = max(largest[name], len(in_flight[name]))
        name = direction.target.name
        if what == "delivered" and name in in_flight:
            in_flight[name].discard(decode_frame(frame).chunk)

    fabric.trace(observe)
    finish(fabric)
    check(job)
    assert largest == dict.fromkeys(in_flight, window)


def traced(seed: int) -> list[tuple[int, str, str, bytes]]:
    fabric, _ = star([synthetic(4, 40, seed=5)], ROUGH, seed)
    seen: list[tuple[int, str, str, bytes]] = []
    fabric.trace(lambda now, what, link, frame: seen.append((now, what, link.name, frame)))
    finish(fabric)
    return seen


def test_a_seed_reproduces_a_run_frame_by_frame() -> None:
    assert traced(seed=7) == traced(seed=7)
    assert traced(seed=7) != traced(seed=8)


def test_a_short_queue_loses_frames_and_is_recovered_from() -> None:
    spec = LinkSpec(rate=10**7, delay=1000, queue_frames=4)
    fabric, (job,) = star([synthetic(16, 20, seed=6)], spec, window=4)
    finish(fabric)
    check(job)
    assert fabric.direction("s", "d").counters.queue_full > 0


def test_a_worker_that_starts_late_is_waited_for() -> None:
    fabric, (job,) = star([synthetic(3, 10, seed=7)], CLEAN)
    fabric.fail("w2")
    fabric.call_at(SECOND, lambda: fabric.restart("w2"))
    fabric.run(until=fabric.all_finished, deadline=SECOND - 1)
    assert job.destination.missing(0) == (2,)
    assert job.destination.explain(0) == "chunk 0 of job 1 waits for w2"
    finish(fabric)
    check(job)


def test_a_worker_that_never_comes_is_named_and_the_run_ends() -> None:
    fabric, (job,) = star([synthetic(3, 4, seed=8)], CLEAN, max_tries=6)
    fabric.fail("w1")
    result = fabric.run(until=fabric.all_finished)
    assert result.reason is StopReason.IDLE
    assert fabric.unfinished() == ("d", "w1")
    assert job.destination.missing(0) == (1,)
    failures = [worker.failure for worker in job.workers]
    given_up = [failure for failure in failures if failure is not None]
    assert [failure.worker for failure in given_up] == ["w0", "w2"]
    assert all(job.destination.missing(failure.chunk) == (1,) for failure in given_up)
    assert not job.destination.done


def test_a_link_that_fails_for_a_while_is_survived() -> None:
    fabric, (job,) = star([synthetic(4, 200, seed=9)], CLEAN)
    fabric.run(until=lambda: job.destination.completed >= 60)
    fabric.set_link("s", "d", up=False)
    fabric.call_at(fabric.now + SECOND // 2, lambda: fabric.set_link("s", "d", up=True))
    finish(fabric)
    check(job)


def test_hosts_ping_each_other_across_the_star() -> None:
    fabric, _ = star([synthetic(2, 0, seed=1)], CLEAN)
    config = worker_config(1, 2)
    seen: list[Echo | None] = []

    def observe(now: int, what: str, direction: Direction, frame: bytes) -> None:
        if what == "delivered" and direction.target.name == "w1":
            seen.append(decode_echo(frame))

    fabric.trace(observe)
    ping = echo_request(config.mac, SWITCH_MAC, config.ip, DESTINATION_IP, 5, 6, b"data")
    fabric.run()
    fabric.send("w1", [ping])
    fabric.run()
    (echo,) = seen
    assert echo == Echo(True, ip_bytes(DESTINATION_IP), ip_bytes(config.ip), 5, 6, b"data")


def test_digits_learn_the_same_through_the_network() -> None:
    training = DigitsTraining(4)
    for round_ in range(3):
        fabric, (job,) = star([training.gradients(round_)], ROUGH, seed=round_, window=16)
        finish(fabric)
        check(job)
        training.apply(job.destination.sums)
    reference = train_without_network(4, rounds=3)
    assert training.weights.tobytes() == reference.weights.tobytes()
    assert training.accuracy() == reference.accuracies[-1]
