"""A training over Mininet: real switches order and sum the tensors of real host processes."""

from __future__ import annotations

import pytest

from controller.scheduling import Scheduling
from evaluation.cluster_mininet import train_over_mininet
from evaluation.training_jobs import TrainingSettings
from traffic.training import LayerWork, Ordering, Schedule

MILLISECOND = 1_000_000
MESSAGE_BITS = 128 * 8


@pytest.mark.parametrize("budget", [None, 1], ids=["parameter server", "blue switch"])
def test_two_jobs_are_trained_and_every_sum_is_right(target: str, budget: int | None) -> None:
    layers = tuple(
        LayerWork(chunks=chunks, forward=MILLISECOND, backward=2 * MILLISECOND)
        for chunks in (1, 2, 3, 12)
    )
    schedule = Schedule(layers=layers, iterations=2, window=2, ordering=Ordering.READY)
    settings = TrainingSettings(
        workers=2,
        payload_rate=200 * MESSAGE_BITS,
        scheduling=Scheduling(),
        budget=budget,
        seed=1,
    )
    results = train_over_mininet(target, (schedule, schedule), settings)
    assert len(results) == 2
    for result in results:
        assert result.correct
        for worker in result.workers:
            assert len(worker.steps) == 2
            for step in worker.steps:
                assert 0 < step.blocking <= step.waiting < step.iteration
                assert len(step.latency) == len(layers)
