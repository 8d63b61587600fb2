"""`bluetree run`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from controller import targets
from controller.cli_failure import asked_failure
from controller.cli_options import (
    Request,
    lanes_option,
    print_json,
    printing,
    stderr,
    stdout,
    topology_options,
)
from controller.errors import BadInputError, CheckFailedError, RunFailedError
from controller.running import DEFAULT_ROUNDS, RunOptions, RunResult
from p4src.builds import BUILDS
from topologies.shaping import ShapingError, parse_rate

__all__ = ["SHARE", "Share", "parsed_link_rate", "run_command"]


class Share(click.FloatRange):
    """A probability; NaN, which compares with nothing, is none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):
            self.fail("nan is not a probability", param, ctx)
        return share


SHARE = Share(0, 1)


@click.command("run")
@topology_options
@click.option("--blue", metavar="A,B", help="The blue switches by name, in place of a strategy.")
@click.option(
    "--target",
    type=click.Choice([targets.AUTO, targets.FABRIC, targets.SOFTSWITCH, targets.BMV2]),
    default=targets.AUTO,
    show_default=True,
    envvar="BLUETREE_TARGET",
    show_envvar=True,
    help="Where the switches run: in this process on a virtual clock (fabric), or one process a "
    "switch over Mininet. auto takes bmv2 for a small network where it is installed and the user "
    "is root, else the fabric.",
)
@click.option(
    "--workload",
    type=click.Choice(["synthetic", "digits"]),
    default="synthetic",
    show_default=True,
    help="Random tensors, or the gradients of a training on scikit-learn's digits.",
)
@click.option(
    "--op",
    type=click.Choice(["reduce", "allreduce"]),
    help="Where the sum goes: to the destination, or on to every worker. [default: reduce; "
    "allreduce for digits]",
)
@click.option(
    "--chunks",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help=f"Messages that each worker sends. [default: {RunOptions().chunks}]",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help=f"Training epochs of the digits workload. [default: {DEFAULT_ROUNDS}]",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Reduces at the same time, each with all workers; their loads on a link add up.",
)
@click.option(
    "--window",
    type=click.IntRange(1),
    metavar="N",
    help="Chunks of a job in flight, a power of two. [default: 32, less over Mininet]",
)
@lanes_option
@click.option(
    "--link-rate",
    metavar="RATE",
    help="What rate 1 of the tree stands for, in bits a second, such as 100M. [default: as fast as "
    "the machine; on the fabric what gives the slowest link 100M]",
)
@click.option(
    "--loss",
    type=Share(0, 0.9),
    default=0.0,
    metavar="P",
    help="Probability that a link loses a frame, each way.",
)
@click.option(
    "--duplicate", type=SHARE, default=0.0, metavar="P", help="... that it doubles a frame."
)
@click.option("--reorder", type=SHARE, default=0.0, metavar="P", help="... that it delays a frame.")
@click.option(
    "--fail",
    multiple=True,
    metavar="PART@FRACTION",
    help="Kill a switch, or take a link between two switches (A-B) down, once this share of all "
    "chunks, from 0 to 1, is complete. The run goes on over another tree where there is one. The "
    "destination (`destination`) is killed, and started anew with all that it has completed.",
)
@click.option(
    "--fail-worker",
    multiple=True,
    metavar="W@FRACTION",
    help="Kill a worker once this share of all chunks, from 0 to 1, is complete.",
)
@click.option(
    "--on-worker-loss",
    type=click.Choice(["fail", "continue"]),
    default="fail",
    show_default=True,
    help="What becomes of the run then: it fails, or goes on without the worker.",
)
@click.option(
    "--rejoin-worker",
    multiple=True,
    metavar="W@FRACTION",
    help="Bring that worker back once this share is; with --on-worker-loss continue.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="SWITCH",
    help="Attach a destination there too, for when the first one is cut off; may be repeated.",
)
@click.option(
    "--pcap",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Record every frame on every link of the fabric, as pcapng.",
)
def run_command(
    request: Request,
    blue: str | None,
    target: str,
    workload: str,
    op: str | None,
    chunks: int | None,
    rounds: int | None,
    jobs: int,
    window: int | None,
    lanes: str,
    link_rate: str | None,
    loss: float,
    duplicate: float,
    reorder: float,
    fail: tuple[str, ...],
    fail_worker: tuple[str, ...],
    on_worker_loss: str,
    rejoin_worker: tuple[str, ...],
    roots: tuple[str, ...],
    pcap: Path | None,
) -> None:
    """Bring the network up, run every worker, check the sums and every link's counter."""
    request.check_picture()
    if pcap is not None and not pcap.parent.is_dir():
        raise BadInputError(f"--pcap {pcap}: there is no folder {pcap.parent}; make it first")
    planned = request.planned(blue)
    options = RunOptions(
        op=op or ("allreduce" if workload == "digits" else "reduce"),
        chunks=chunks or RunOptions().chunks,
        jobs=jobs,
        window=window,
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
        link_rate=parsed_link_rate(link_rate),
        seed=request.seed,
        build=BUILDS[int(lanes)],
        failure=asked_failure(planned.topology, fail, fail_worker, on_worker_loss, rejoin_worker),
        pcap=pcap,
        roots=roots,
    )
    where = targets.choose(target, planned.topology, options)
    # This loads all that a run needs; a refusal above has not waited for it.
    from controller import run

    progress = stderr()
    if workload == "digits":
        if chunks is not None:
            raise BadInputError("--chunks: the digits workload has its own tensor; leave it out")
        result = run.run_digits(planned, options, rounds, progress, where)
    else:
        if rounds is not None:
            raise BadInputError("--rounds: only --workload digits trains in rounds; use --chunks")
        result = run.run_synthetic(planned, options, progress, where)
    _show(request, result)


def _show(request: Request, result: RunResult) -> None:
    """Print what a run found out; raises what it failed with."""
    from controller import render, report, run

    failed = "" if result.aftermath is None else result.aftermath.text
    if request.picture is not None and not failed:
        from controller.drawing import draw_run

        draw_run(result, request.picture)
    if request.as_json:
        print_json(report.run_document(result))
    elif not failed:
        with printing():
            render.show_run(stdout(), result)
    if failed and result.correct:
        raise RunFailedError(failed)
    if not result.passed:
        raise CheckFailedError(run.verdict(result))


def parsed_link_rate(text: str | None) -> int | None:
    """Bits a second of a `--link-rate`; raises BadInputError."""
    try:
        return None if text is None else parse_rate(text)
    except ShapingError as error:
        raise BadInputError(f"--link-rate: {error}") from None
