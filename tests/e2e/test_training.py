"""Trainings on the fabric, through the compiled program: who waits, in what order tensors leave."""

from statistics import mean

import pytest

from controller.scheduling import Scheduling
from evaluation.cluster import Cluster
from evaluation.training_jobs import CORE, EDGE, JobResult, TrainingSettings
from topologies.fabric import Direction
from traffic.errors import ConfigError
from traffic.ticket import read_ticket
from traffic.training import MODELS, LayerWork, Ordering, Schedule, compress

FACTOR = 32_768
MILLISECOND = 1_000_000
RATE = 25 * 10**9 // FACTOR
LEAD = Scheduling(step=1, lead=15)


def vgg16(ordering: Ordering, window: int = 1, iterations: int = 3) -> Schedule:
    layers = compress(MODELS["vgg16"], factor=FACTOR, batch=32, multiplications_per_second=5e12)
    return Schedule(layers=layers, iterations=iterations, window=window, ordering=ordering)


def train(
    ordering: Ordering,
    scheduling: Scheduling | None,
    jobs: int = 1,
    window: int = 1,
    budget: int | None = None,
    loss: float = 0,
    iterations: int = 3,
) -> tuple[JobResult, ...]:
    settings = TrainingSettings(
        workers=4,
        payload_rate=RATE,
        scheduling=scheduling,
        budget=budget,
        loss=loss,
        jitter=0.01,
        seed=5,
    )
    return Cluster((vgg16(ordering, window, iterations),) * jobs, settings).run()


def blocking(results: tuple[JobResult, ...]) -> float:
    """Mean over jobs, workers and iterations but the first, in nanoseconds."""
    assert all(result.correct for result in results)
    return mean(
        step.blocking for result in results for each in result.workers for step in each.steps[1:]
    )


def test_one_job_waits_46_percent_less_than_with_fifo() -> None:
    fifo = blocking(train(Ordering.READY, None))
    assert blocking(train(Ordering.READY, Scheduling())) < 0.54 * fifo


def test_two_jobs_wait_less_than_with_order_at_the_hosts_alone() -> None:
    fifo = blocking(train(Ordering.READY, None, jobs=2))
    host = blocking(train(Ordering.LAYER, None, jobs=2))
    express = blocking(train(Ordering.READY, Scheduling(), jobs=2))
    both = blocking(train(Ordering.LAYER, Scheduling(), jobs=2))
    assert express < 0.54 * fifo
    assert express < host < fifo
    assert both < host


def test_whole_tensors_at_once_need_a_window_that_opens_ahead() -> None:
    """What waits in the highest queue since it was the lowest layer holds up those that follow."""
    fifo = blocking(train(Ordering.READY, None, window=10**6))
    express = blocking(train(Ordering.READY, Scheduling(), window=10**6))
    ahead = blocking(train(Ordering.READY, LEAD, window=10**6))
    assert 0.5 * fifo < express < fifo
    assert ahead < 0.1 * fifo


@pytest.mark.parametrize("scheduling", [None, Scheduling(), LEAD], ids=["fifo", "express", "ahead"])
def test_aggregated_and_prioritised_sums_stay_exact_under_loss(
    scheduling: Scheduling | None,
) -> None:
    for budget in (1, 2):
        results = train(Ordering.READY, scheduling, jobs=2, budget=budget, loss=0.01, iterations=2)
        for result in results:
            assert result.correct
            assert result.resent > 0
            assert [len(each.steps) for each in result.workers] == [2] * 4


def test_without_loss_a_blue_switch_sends_each_chunk_once() -> None:
    """The layers' messages, last to first, are no reason to ask for any again."""
    schedule = vgg16(Ordering.READY, iterations=2)
    settings = TrainingSettings(workers=4, payload_rate=RATE, budget=1, jitter=0.01, seed=5)
    cluster = Cluster((schedule, schedule), settings)
    for result in cluster.run():
        assert result.correct
        assert result.resent == 0
    for link in cluster.shared_links:
        assert link.counters.sent == 2 * 2 * schedule.chunks


class Leaving:
    """Watches the shared link towards the servers: what is offered, and what leaves, by layer."""

    def __init__(self, cluster: Cluster) -> None:
        self.left: list[tuple[int, int, int]] = []
        self._towards = cluster.shared_links[0]
        cluster.fabric.trace(self._note)

    def _note(self, now: int, what: str, direction: Direction, frame: bytes) -> None:
        if what == "sent" and direction is self._towards:
            ticket = read_ticket(frame)
            assert ticket is not None
            self.left.append((now, ticket.iteration, ticket.layer))


def one_burst(scheduling: Scheduling | None, layers: int = 16) -> list[int]:
    """Layers in the order in which they leave, of a backward pass that takes almost no time.

    Each layer has 6 messages from each of 4 workers, all at once; the link takes 1 ms for each.
    """
    work = tuple(LayerWork(chunks=6, forward=1, backward=1_000) for _ in range(layers))
    schedule = Schedule(layers=work, iterations=1, window=6, ordering=Ordering.READY)
    cluster = Cluster(
        (schedule,),
        TrainingSettings(workers=4, payload_rate=128 * 8 * 1000, scheduling=scheduling),
    )
    leaving = Leaving(cluster)
    (result,) = cluster.run()
    assert result.correct
    assert len(leaving.left) == 4 * 6 * layers
    return [layer for _, _, layer in leaving.left]


def test_the_order_of_layers_at_the_bottleneck_is_what_the_window_says() -> None:
    """Two layers a queue from a lead of 15: all wait before the first few have left."""
    order = one_burst(LEAD)
    # The worker's own link delivers a message while the shared one sends a tenth of it.
    arriving, settled = order[:12], order[12:]
    assert set(arriving[:1]) == {15}
    queues = [7 - layer // 2 for layer in settled]
    falls = [i for i in range(1, len(queues)) if queues[i] > queues[i - 1]]
    # From the time that layer 0 has arrived, no lower queue goes before a higher one.
    begun = order.index(0) - 12
    assert begun < len(order) // 3
    assert not [i for i in falls if i > begun]
    assert queues[begun:] == sorted(queues[begun:], reverse=True)


def test_fifo_leaves_as_it_came() -> None:
    assert one_burst(None) == sorted(one_burst(None), reverse=True)


def test_the_window_slides_at_the_bottleneck() -> None:
    """The published rule: each layer so far is the lowest when it comes, so all share a queue."""
    order = one_burst(Scheduling())
    assert order == sorted(order, reverse=True)


def test_other_priorities_are_what_the_counters_say() -> None:
    layers = tuple(LayerWork(chunks=2, forward=1, backward=5 * MILLISECOND) for _ in range(10))
    schedule = Schedule(layers=layers, iterations=1, window=2, ordering=Ordering.READY)
    settings = TrainingSettings(
        workers=1, payload_rate=10**8, scheduling=Scheduling(queues=4, middle=0, lead=9)
    )
    cluster = Cluster((schedule,), settings)
    cluster.run()
    # One worker: layers 3 .. 9 are beyond the window, 2 messages each way on two switches.
    for switch in (EDGE, CORE):
        assert cluster.queued(switch) == {0: 28, 1: 4, 2: 4, 3: 4, 4: 0, 5: 0, 6: 0, 7: 0}


def test_iterations_follow_each_other_in_their_tickets() -> None:
    cluster = Cluster(
        (vgg16(Ordering.READY, iterations=2),),
        TrainingSettings(workers=2, payload_rate=RATE, scheduling=Scheduling()),
    )
    leaving = Leaving(cluster)
    cluster.run()
    iterations = [iteration for _, iteration, _ in leaving.left]
    assert iterations == sorted(iterations)
    assert set(iterations) == {0, 1}


def test_a_model_that_does_not_fit_the_slots_is_refused() -> None:
    layers = (LayerWork(chunks=5000, forward=1, backward=1),)
    schedule = Schedule(layers=layers, iterations=1, window=1, ordering=Ordering.READY)
    with pytest.raises(ConfigError, match="compress the model more"):
        Cluster((schedule,), TrainingSettings(workers=1, payload_rate=1, budget=1))
