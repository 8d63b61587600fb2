"""`bluetree run`: a plan, brought up on a testbed, run, checked and measured."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from controller import targets
from controller.aftermath import aftermath, failure_point
from controller.compile import JobPlan
from controller.errors import BadInputError, RunFailedError
from controller.measurement import LinkCount, Measurement, measure
from controller.planning import Plan, plan
from controller.running import DEFAULT_ROUNDS, RunOptions, RunResult, StrategyRow, Training
from controller.testbed import FailurePoint, OnStuck, Testbed
from controller.watchdog import Stuck
from controller.worker_loss import measure_without
from topologies.network import Network, wire
from traffic.endpoint import Op
from traffic.reports import JobOutcome, Values
from traffic.workloads import DigitsTraining, exact_sums, synthetic, train_without_network

COMPARED = ("smc", "top", "max", "level", "all-red", "all-blue")
_LANE_BITS = 32


def run_synthetic(
    planned: Plan, options: RunOptions, console: Console, target: str = targets.FABRIC
) -> RunResult:
    """Sum random tensors, one for each job, and check them against independent sums."""
    start = time.perf_counter()
    network = _wired(planned, options)
    failure = failure_point(planned, network, options)
    workers = len(network.workers)
    values = [
        synthetic(workers, options.chunks, options.seed + job, options.build.lanes)
        for job in range(options.jobs)
    ]
    with _testbed(network, options, console, target) as testbed:
        window = targets.window(target, options, planned.topology.overlay.tree)
        plans = testbed.switches.install([planned.blue] * options.jobs, window)
        total = options.jobs * options.chunks
        told: list[Stuck] | None = [] if target == targets.FABRIC else None
        with _progress(console, "chunks", total) as progress:
            outcomes = testbed.reduce(
                plans,
                values,
                Op(options.op),
                failure=failure,
                progress=progress,
                on_stuck=partial(_say_stuck, console, told),
            )
        after = None
        if failure is None or options.failure is None:
            _require_complete(outcomes, told or ())
            for stuck in told or ():
                _say(console, f"{stuck.text}; it went on")
        else:
            after = aftermath(network, options.failure, failure, outcomes, values, told or ())
        network_seconds = testbed.busy / 1e9
        return RunResult(
            target=target,
            op=options.op,
            plans=(planned,) * options.jobs,
            switches=len(network.topology.switches),
            workers=workers,
            chunks=options.chunks,
            lanes=options.build.lanes,
            jobs=options.jobs,
            correct=all(
                one.is_right(exact_sums(sent)) for one, sent in zip(outcomes, values, strict=True)
            )
            if after is None
            else all(job.right for job in after.jobs),
            measurement=_measured(testbed, planned, options, outcomes, failure, plans),
            retransmissions=sum(outcome.resent for outcome in outcomes),
            outcomes=_nonzero(testbed.switches.outcome_counts()),
            seconds=time.perf_counter() - start,
            network_seconds=network_seconds,
            goodput=_goodput(options, sum(one.completed for one in outcomes), network_seconds),
            lossless=_is_lossless(options),
            aftermath=after,
        )


def _measured(
    testbed: Testbed,
    planned: Plan,
    options: RunOptions,
    outcomes: Sequence[JobOutcome],
    failure: FailurePoint | None,
    plans: Sequence[JobPlan],
) -> Measurement:
    """What the links of the tree that was used last have carried: of the chunks without a worker
    that has died or, where it came back, of those that have it again.

    `plans` are those that the jobs began with.
    """
    if failure is not None and failure.goes_on:
        back = failure.comeback
        parts = back and back.measured(testbed.switches, planned, options.chunks)
        parts = parts or measure_without(testbed, planned, plans, failure.part, outcomes)
        if parts is not None:
            return parts
    went_on = None if failure is None or failure.rescue is None else failure.rescue.continuation
    if went_on is not None:
        others = [plan for _, plan in went_on.jobs]
        counts = testbed.switches.link_counts_beside(went_on.detour.network, others)
        return measure([went_on.plan] * len(others), counts, options.chunks - went_on.first)
    # Of jobs that a failure ended early, the chunks that there were.
    chunks = max(one.completed for one in outcomes) or options.chunks
    return measure([planned] * options.jobs, testbed.switches.link_counts(), chunks)


def run_digits(
    planned: Plan,
    options: RunOptions,
    rounds: int | None,
    console: Console,
    target: str = targets.FABRIC,
) -> RunResult:
    """Train on scikit-learn's digits, every gradient summed in the switches.

    The training runs under the plan; then the next gradient is summed once under every strategy,
    by reallocation of the same switches.
    """
    if asked := _not_for_digits(options):
        raise BadInputError(
            f"{', '.join(asked)}: --workload digits trains one job, in which nothing fails; "
            f"leave {'it' if len(asked) == 1 else 'them'} out"
        )
    if options.op != Op.ALLREDUCE:
        raise BadInputError("--workload digits: every worker needs the sum; leave out --op reduce")
    start = time.perf_counter()
    network = _wired(planned, options)
    rounds = rounds or DEFAULT_ROUNDS
    training = DigitsTraining(len(network.workers), options.seed, options.build.lanes)
    with _testbed(network, options, console, target) as testbed:
        window = targets.window(target, options, planned.topology.overlay.tree)
        run = _TrainingRun(testbed, window, partial(_say_stuck, console, None))
        run.install(planned)
        accuracy = []
        with _progress(console, "rounds", rounds) as progress:
            for done in range(1, rounds + 1):
                training.apply(run.reduce(training.gradients(training.round)))
                accuracy.append(training.accuracy())
                progress(done)
        network_seconds = testbed.busy / 1e9
        chunks = rounds * training.chunks
        measurement = run.measurement(planned)
        resent, outcomes = run.resent, _nonzero(testbed.switches.outcome_counts())
        reference = train_without_network(len(network.workers), rounds, options.seed)
        identical = bool(np.array_equal(reference.weights, training.weights))
        rows = _compare(run, planned, training)
    return RunResult(
        target=target,
        op=options.op,
        plans=(planned,),
        switches=len(network.topology.switches),
        workers=len(network.workers),
        chunks=chunks,
        lanes=options.build.lanes,
        jobs=1,
        correct=run.correct and identical,
        measurement=measurement,
        retransmissions=resent,
        outcomes=outcomes,
        seconds=time.perf_counter() - start,
        network_seconds=network_seconds,
        goodput=_goodput(options, chunks, network_seconds),
        lossless=_is_lossless(options),
        training=Training(tuple(accuracy), identical, rows),
    )


def _not_for_digits(options: RunOptions) -> list[str]:
    """The options given that only the synthetic workload has."""
    failure = options.failure
    asked = ["--jobs"] if options.jobs != 1 else []
    if failure is not None:
        asked.append("--fail-worker" if failure.is_worker else "--fail")
        asked += ["--on-worker-loss"] if failure.goes_on else []
        asked += ["--rejoin-worker"] if failure.returns is not None else []
    return asked


class _TrainingRun:
    """Reduces of one job, round after round, under one plan at a time."""

    def __init__(self, testbed: Testbed, window: int, on_stuck: OnStuck) -> None:
        self._on_stuck = on_stuck
        self._testbed = testbed
        self._window = window
        self._before: Mapping[str, LinkCount] = {}
        self._chunks = 0
        self.correct = True
        self.resent = 0

    def install(self, planned: Plan) -> None:
        """Reallocate to a plan; what is measured counts from here."""
        self._plans = self._testbed.switches.install([planned.blue], self._window)
        self._before = self._testbed.switches.link_counts()
        self._chunks = 0

    def reduce(self, gradients: Values) -> NDArray[np.integer]:
        """The sum of the workers' gradients, as the last worker received it."""
        outcomes = self._testbed.reduce(
            self._plans, [gradients], Op.ALLREDUCE, on_stuck=self._on_stuck
        )
        _require_complete(outcomes)
        self._chunks += gradients.shape[1]
        self.correct &= outcomes[0].is_right(exact_sums(gradients))
        self.resent += outcomes[0].resent
        return outcomes[0].workers[-1].results

    def measurement(self, planned: Plan) -> Measurement:
        """What the links carried since `install`."""
        now = self._testbed.switches.link_counts()
        counts = {name: now[name] - self._before[name] for name in now}
        return measure([planned], counts, self._chunks)


def _compare(run: _TrainingRun, planned: Plan, training: DigitsTraining) -> tuple[StrategyRow, ...]:
    gradients = training.gradients(training.round)
    rows = []
    for strategy in COMPARED:
        other = plan(planned.topology, planned.k, strategy)
        run.install(other)
        run.reduce(gradients)
        measurement = run.measurement(other)
        rows.append(
            StrategyRow(
                strategy,
                tuple(other.blue_names),
                str(measurement.predicted),
                str(measurement.measured),
                len(measurement.differing),
            )
        )
    return tuple(rows)


def verdict(result: RunResult) -> str:
    """Why a result did not pass, in one line."""
    if result.training is not None and not result.training.identical:
        return "the weights differ from those of the same training without a network"
    if not result.correct:
        return "a sum is wrong: it differs from the sum of what the workers sent"
    if not result.measurement.differing:
        return "under one of the compared strategies a link did not carry what was predicted"
    link = result.measurement.differing[0]
    return (
        f"link {link.switch} -> {link.parent or 'destination'} carried {float(link.measured):g} "
        f"messages a chunk and {link.predicted} were predicted "
        f"({len(result.measurement.differing)} links differ)"
    )


def _wired(planned: Plan, options: RunOptions) -> Network:
    network = wire(planned.topology, options.roots, options.build)
    if not network.workers:
        raise BadInputError(f"{planned.topology.name}: has no workers; give it some with --workers")
    return network


@contextmanager
def _testbed(
    network: Network, options: RunOptions, console: Console, target: str
) -> Iterator[Testbed]:
    with ExitStack() as stack:
        with console.status(f"bringing up {len(network.topology.switches)} switches ({target})"):
            testbed = stack.enter_context(targets.bring_up(network, target, options))
        yield testbed


@contextmanager
def _progress(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, on a terminal; the function says how many of `total` are done."""
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _say_stuck(console: Console, told: list[Stuck] | None, stuck: Stuck) -> None:
    """Say it at once, or, given a list, keep it for the end of a run that ends by itself."""
    if told is not None:
        told.append(stuck)
        return
    _say(console, stuck.text)


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _require_complete(outcomes: Sequence[JobOutcome], told: Sequence[Stuck] = ()) -> None:
    incomplete = [outcome for outcome in outcomes if not outcome.complete]
    if not incomplete:
        return
    where = f"{told[-1].text}; " if told else ""
    raise RunFailedError(
        f"{incomplete[0].stuck}; {where}complete jobs: {len(outcomes) - len(incomplete)} of "
        f"{len(outcomes)}"
    )


def _is_lossless(options: RunOptions) -> bool:
    faults = (options.loss, options.duplicate, options.reorder)
    return not any(faults) and options.failure is None


def _goodput(options: RunOptions, chunks: int, seconds: float) -> float:
    return chunks * options.build.lanes * _LANE_BITS / seconds if seconds else 0.0


def _nonzero(counts: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
