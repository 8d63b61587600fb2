"""`bluetree launch`."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from controller import render, report, targets
from controller.cli_options import (
    Request,
    lanes_option,
    print_json,
    printing,
    stderr,
    stdout,
    topology_options,
)
from controller.cli_run import SHARE, Share, parsed_link_rate
from controller.ranks.launch import launch
from controller.ranks.serving import PATIENCE_S
from controller.running import RunOptions
from p4src.builds import BUILDS
from traffic.collectives.link import OnLoss


@click.command("launch")
@topology_options
@click.option("--blue", metavar="A,B", help="The blue switches by name, in place of a strategy.")
@click.option(
    "--target",
    type=click.Choice([targets.FABRIC, targets.SOFTSWITCH, targets.BMV2]),
    default=targets.FABRIC,
    show_default=True,
    envvar="BLUETREE_TARGET",
    show_envvar=True,
    help="Where the switches run: in this process on a virtual clock, or one process a switch over "
    "Mininet, each rank on a host of its own.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Communicators that every rank may open, each a job of its own.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=PATIENCE_S,
    show_default=True,
    metavar="SECONDS",
    help="How long a call waits for ranks that have not made it.",
)
@click.option(
    "--on-rank-loss",
    type=click.Choice([choice.value for choice in OnLoss]),
    default=OnLoss.FAIL.value,
    show_default=True,
    help="What becomes of the launch when a rank dies: it fails, or the others go on without it.",
)
@click.option(
    "--window", type=click.IntRange(min=1), metavar="N", help="Chunks in flight, a power of two."
)
@lanes_option
@click.option("--link-rate", metavar="RATE", help="Of a link of rate 1, such as 100M or 1G.")
@click.option("--loss", type=Share(0, 0.9), default=0.0, metavar="P", help="As of `run`.")
@click.option("--duplicate", type=SHARE, default=0.0, metavar="P", help="As of `run`.")
@click.option("--reorder", type=SHARE, default=0.0, metavar="P", help="As of `run`.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def launch_command(
    request: Request,
    blue: str | None,
    target: str,
    jobs: int,
    timeout: float,
    on_rank_loss: str,
    window: int | None,
    lanes: str,
    link_rate: str | None,
    loss: float,
    duplicate: float,
    reorder: float,
    command: tuple[str, ...],
) -> None:
    """Run a program once a worker, its arrays summed by the network: TOPOLOGY -- COMMAND...

    Each process finds its RANK and the WORLD_SIZE in the environment; in Python,
    `traffic.Communicator.from_env()` joins them.
    """
    request.check_picture()
    planned = request.planned(blue)
    options = RunOptions(
        op="allreduce",
        jobs=jobs,
        window=window,
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
        link_rate=parsed_link_rate(link_rate),
        seed=request.seed,
        build=BUILDS[int(lanes)],
    )
    # Ranks carry the jobs themselves, so that every target takes any number of them.
    where = targets.choose(target, planned.topology, replace(options, jobs=1))
    # With --json, standard output is for the document alone.
    ranks_print = sys.stderr if request.as_json else None
    progress = stderr()
    on_loss = OnLoss(on_rank_loss)
    result = launch(planned, options, where, command, timeout, progress, ranks_print, on_loss)
    request.draw(planned)
    if request.as_json:
        print_json(report.launch_document(result))
    else:
        with printing():
            render.show_launch(stdout(), result)
