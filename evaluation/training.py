"""Trainings on the fabric: every way to order tensors, alone and with aggregation in the network.

A cell is one run of `evaluation.cluster`: a model, a scheme, a number of jobs. Times of computation
are in proportion to the multiplications of each layer, at the speed and batch below; sizes and link
rates are divided by `FACTOR`, so that times are those of the whole models.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from controller.scheduling import Scheduling
from evaluation.cluster import Cluster
from evaluation.settings import Cell, Record, Settings, Value, seed_of
from evaluation.training_jobs import JobResult, TrainingSettings
from p4src.constants import QUEUES
from traffic.training import MODELS, Ordering, Schedule, compress

__all__ = [
    "AGGREGATED",
    "DEPTHS",
    "LOSSES",
    "PLAIN",
    "RATES_GBPS",
    "SCHEMES",
    "WINDOWS",
    "WORKERS",
    "Scheme",
    "cells",
    "measure",
    "records_of",
]

FACTOR = 8_192
"""Real values for each value sent; a message stands for 1 MiB."""
WORKERS = 4
ITERATIONS = 4
"""Of which the first is not counted: it begins with empty links."""
BATCH = 32
MULTIPLICATIONS_PER_SECOND = 5e12
"""Multiply-accumulate operations: 10 TFLOP/s, two thirds of an NVIDIA V100's peak in float32."""
RATE_GBPS = 25
WINDOW = 4
"""Messages of a tensor without an answer: 4 MiB, the largest send buffer of a Linux socket."""
JITTER_PERCENT = 1
UNLIMITED = 1_000_000

PLAIN = -1
"""Budget of a parameter server's plain traffic: nothing is aggregated in the network."""
AGGREGATED = 1

RATES_GBPS = (10, 25, 50, 100)
WINDOWS = (2, 4, 8, 16, UNLIMITED)
DEPTHS = (16, 32, 64, 128, UNLIMITED)
LOSSES = (0, 1_000, 10_000, 50_000)
"""Frames lost of a million on each link, each way."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """Who orders tensors: `ordering` at the workers; the switches, by a window opened ahead or not.

    `ahead`: the window has room for all layers, and opens so that layer 0 has the highest queue.
    """

    title: str
    ordering: Ordering
    express: bool = False
    ahead: bool = False

    def scheduling(self, layers: int) -> Scheduling | None:
        """Settings of the switches for a model of so many layers."""
        if not self.express:
            return None
        if not self.ahead:
            return Scheduling()
        step = max(0, (-(-layers // QUEUES) - 1).bit_length())
        return Scheduling(step=step, lead=layers - 1)


SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        "fifo": Scheme("FIFO", Ordering.READY),
        "host": Scheme("host-side ordering", Ordering.LAYER),
        "express": Scheme("TensorExpress", Ordering.READY, express=True),
        "express-host": Scheme("TensorExpress and host-side", Ordering.LAYER, express=True),
        "ahead": Scheme("TensorExpress, opened ahead", Ordering.READY, express=True, ahead=True),
    }
)


def cells(settings: Settings) -> list[Cell]:
    """The trainings: all models and schemes, and sweeps of one model."""
    return [
        _cell(settings, repeat, **changes)
        for repeat in range(min(settings.repeats, settings.trainings))
        for changes in (*_main(settings), *(_sweeps(settings) if repeat == 0 else ()))
    ]


def _main(settings: Settings) -> Iterator[dict[str, Value]]:
    for model in settings.models:
        for jobs in (1, 2):
            for budget in (PLAIN, AGGREGATED):
                for scheme in SCHEMES:
                    yield {"model": model, "jobs": jobs, "budget": budget, "scheme": scheme}


def _sweeps(settings: Settings) -> Iterator[dict[str, Value]]:
    if not settings.sweeps:
        return
    # The model whose tensors differ most in size, if it is trained at all.
    model = "vgg16" if "vgg16" in settings.models else settings.models[0]
    for scheme in SCHEMES:
        for rate in RATES_GBPS:
            yield {"sweep": "rate", "model": model, "scheme": scheme, "jobs": 2, "gbps": rate}
    for scheme in ("fifo", "express", "ahead"):
        for window in WINDOWS:
            yield {"sweep": "window", "model": model, "scheme": scheme, "window": window}
        for depth in DEPTHS:
            yield {"sweep": "depth", "model": model, "scheme": scheme, "jobs": 2, "depth": depth}
    for scheme in ("fifo", "express"):
        for loss in LOSSES:
            yield {
                "sweep": "loss",
                "model": model,
                "scheme": scheme,
                "jobs": 2,
                "budget": AGGREGATED,
                "loss": loss,
            }


def _cell(settings: Settings, repeat: int, **changes: Value) -> Cell:
    setting: dict[str, Value] = {
        "sweep": "none",
        "model": "vgg16",
        "scheme": "fifo",
        "jobs": 1,
        "budget": PLAIN,
        "gbps": RATE_GBPS,
        "window": WINDOW,
        "depth": UNLIMITED,
        "loss": 0,
        "seed": settings.seed,
    }
    return Cell("training", tuple((setting | changes).items()), repeat)


def measure(cell: Cell) -> tuple[Record, ...]:
    """Times of every worker and iteration but the first, in milliseconds.

    Series "blocking", "waiting" and "iteration": x is worker * 100 + iteration, workers of all jobs
    numbered on. "latency": x is the layer, the mean over workers and iterations. At x = 0 "correct"
    (1: every sum was right), "resent" (messages sent again) and "dropped" (by full queues).
    """
    model = MODELS[cell.text("model")]
    scheme = SCHEMES[cell.text("scheme")]
    jobs, budget, depth = cell.number("jobs"), cell.number("budget"), cell.number("depth")
    layers = compress(
        model,
        factor=FACTOR,
        batch=BATCH,
        multiplications_per_second=MULTIPLICATIONS_PER_SECOND,
    )
    schedule = Schedule(
        layers=layers,
        iterations=ITERATIONS,
        window=cell.number("window"),
        ordering=scheme.ordering,
    )
    settings = TrainingSettings(
        workers=WORKERS,
        payload_rate=cell.number("gbps") * 10**9 // FACTOR,
        scheduling=scheme.scheduling(len(layers)),
        budget=None if budget == PLAIN else budget,
        depth=None if depth == UNLIMITED else depth,
        loss=cell.number("loss") / 1_000_000,
        jitter=JITTER_PERCENT / 100,
        # Equal for all schemes: they are compared on the same computation.
        seed=seed_of(cell.number("seed"), model.name, jobs, cell.repeat),
    )
    cluster = Cluster((schedule,) * jobs, settings)
    results = cluster.run()
    dropped = sum(link.counters.queue_full for link in cluster.shared_links)
    return (*records_of(results, len(layers)), Record("dropped", 0, Fraction(dropped)))


def records_of(results: Sequence[JobResult], layers: int) -> tuple[Record, ...]:
    """The records of a training; see `measure`."""
    steps = [
        (worker * 100 + i, step)
        for worker, each in enumerate(each for result in results for each in result.workers)
        for i, step in enumerate(each.steps)
        if i
    ]
    records = [
        Record(series, x, Fraction(getattr(step, series), 10**6))
        for series in ("blocking", "waiting", "iteration")
        for x, step in steps
    ]
    for layer in range(layers if steps else 0):
        total = sum(step.latency[layer] for _, step in steps)
        records.append(Record("latency", layer, Fraction(total, 10**6 * len(steps))))
    records.append(Record("correct", 0, Fraction(all(result.correct for result in results))))
    records.append(Record("resent", 0, Fraction(sum(result.resent for result in results))))
    return tuple(records)
