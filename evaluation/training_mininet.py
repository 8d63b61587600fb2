"""Trainings over Mininet, with switch and host processes and in real time: fewer and smaller.

Sizes are divided by more than on the fabric, and time is stretched, so that the machine keeps up:
the shared link carries `MESSAGES_PER_SECOND`, and computation is slower by as much.
"""

from evaluation.cluster_mininet import train_over_mininet
from evaluation.settings import Cell, Record, Settings, seed_of
from evaluation.training import (
    AGGREGATED,
    BATCH,
    JITTER_PERCENT,
    MULTIPLICATIONS_PER_SECOND,
    PLAIN,
    RATE_GBPS,
    SCHEMES,
    WORKERS,
    records_of,
)
from evaluation.training_jobs import TrainingSettings
from p4src.constants import LANES
from traffic.message import LANE_BYTES
from traffic.training import MODELS, Schedule, compress

__all__ = ["FACTOR", "ITERATIONS", "MESSAGES_PER_SECOND", "STRETCH", "WINDOW", "cells", "measure"]

FACTOR = 65_536
ITERATIONS = 3
WINDOW = 2
MESSAGES_PER_SECOND = 200
_MESSAGE_BITS = LANES * LANE_BYTES * 8
STRETCH = RATE_GBPS * 10**9 / (MESSAGES_PER_SECOND * _MESSAGE_BITS * FACTOR)
"""How many times longer everything takes than in the trainings on the fabric."""


def cells(settings: Settings, target: str) -> list[Cell]:
    """One job of every model under every scheme, with and without a blue switch, once."""
    return [
        Cell(
            "training-mininet",
            (
                ("target", target),
                ("sweep", "none"),
                ("model", model),
                ("scheme", scheme),
                ("jobs", 1),
                ("budget", budget),
                ("seed", settings.seed),
            ),
            0,
        )
        for model in settings.models
        for budget in (PLAIN, AGGREGATED)
        for scheme in SCHEMES
    ]


def measure(cell: Cell) -> tuple[Record, ...]:
    """See `evaluation.training.measure`; times are real ones."""
    model, scheme = MODELS[cell.text("model")], SCHEMES[cell.text("scheme")]
    layers = compress(
        model,
        factor=FACTOR,
        batch=BATCH,
        multiplications_per_second=MULTIPLICATIONS_PER_SECOND / STRETCH,
    )
    schedule = Schedule(
        layers=layers, iterations=ITERATIONS, window=WINDOW, ordering=scheme.ordering
    )
    budget = cell.number("budget")
    settings = TrainingSettings(
        workers=WORKERS,
        payload_rate=MESSAGES_PER_SECOND * _MESSAGE_BITS,
        scheduling=scheme.scheduling(len(layers)),
        budget=None if budget == PLAIN else budget,
        jitter=JITTER_PERCENT / 100,
        seed=seed_of(cell.number("seed"), model.name, 1, cell.repeat),
    )
    return records_of(train_over_mininet(cell.text("target"), (schedule,), settings), len(layers))
