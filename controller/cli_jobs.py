"""The commands against a testbed that is up: status, start, reallocate, rejoin, counters, stop."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click

from controller.cli_options import (
    SEED,
    debug_option,
    folder_option,
    json_option,
    print_json,
    printing,
    stdout,
)
from controller.errors import BadInputError, CheckFailedError
from controller.placement import STRATEGIES
from controller.service import bluetree_pb2 as api
from controller.service.client import ControllerClient
from controller.service.documents import document
from controller.service.folder import Folder

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "counters_command",
    "reallocate_command",
    "rejoin_command",
    "start_command",
    "status_command",
    "stop_command",
]

WATCH_S = 1.0


def _common(command: Callable[..., None]) -> Callable[..., None]:
    return folder_option(json_option(debug_option(command)))


def _choice_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add -k, --strategy and --blue, as the argument `choice`."""

    @functools.wraps(command)
    def with_choice(
        budget: int | None, strategy: str | None, blue: str | None, **given: Any
    ) -> None:
        if blue is not None and strategy is not None:
            raise BadInputError("--blue names the switches itself: leave out --strategy")
        names = [] if blue is None else [name.strip() for name in blue.split(",") if name.strip()]
        choice = api.Choice(strategy=strategy or "", k=budget, blue=names, given=blue is not None)
        command(choice=choice, **given)

    for option in (
        click.option("--blue", metavar="A,B", help="The blue switches by name."),
        click.option("--strategy", type=click.Choice(list(STRATEGIES)), help="How to choose them."),
        click.option(
            "-k", "budget", type=click.IntRange(0), metavar="N", help="How many blue switches."
        ),
    ):
        with_choice = option(with_choice)
    return with_choice


@click.command("status")
@click.option("--watch", is_flag=True, help="Show it again and again, until interrupted.")
@_common
def status_command(folder: Folder, as_json: bool, watch: bool) -> None:
    """Show the switches, jobs and links of a testbed, predicted and measured."""
    _refuse_endless_json(as_json, watch)
    with ControllerClient(folder) as client:
        if as_json:
            print_json(document(client.status()))
            return
        from controller.render_live import status_view

        _show(lambda: status_view(client.status()), watch)


@click.command("start")
@_choice_options
@click.option(
    "--op",
    type=click.Choice(["reduce", "allreduce"]),
    default="reduce",
    show_default=True,
    help="Where the sum goes: to the destination, or on to every worker.",
)
@click.option(
    "--chunks",
    type=click.IntRange(1, 1 << 32),
    metavar="N",
    help="Messages that each worker sends. [default: until `bluetree stop`]",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the values.")
@click.option(
    "--window", type=click.IntRange(1), metavar="N", help="Chunks in flight, a power of two."
)
@click.option(
    "--workers", metavar="W0,W1", help="The workers that take part, by name. [default: all]"
)
@click.option(
    "--on-worker-loss",
    type=click.Choice(["fail", "continue"]),
    default="fail",
    show_default=True,
    help="What becomes of the job when a worker dies: it fails, or goes on without it.",
)
@_common
def start_command(
    folder: Folder,
    as_json: bool,
    choice: api.Choice,
    op: str,
    chunks: int | None,
    seed: int,
    window: int | None,
    workers: str | None,
    on_worker_loss: str,
) -> None:
    """Start a job: admit it, make the switches ready, let its workers send."""
    names = [] if workers is None else [name.strip() for name in workers.split(",")]
    request = api.StartJobRequest(
        op=op,
        chunks=chunks,
        seed=seed,
        choice=choice,
        window=window,
        workers=names,
        on_worker_loss=on_worker_loss,
    )
    with ControllerClient(folder) as client:
        _show_change(client.start(request), as_json, "started")


@click.command("reallocate")
@_choice_options
@click.option("--job", type=click.IntRange(1), metavar="J", help="Which job. [default: the one]")
@click.option(
    "--root",
    metavar="SWITCH",
    help="Go on, under another job number, with the destination that `up --root` attached to it.",
)
@_common
def reallocate_command(
    folder: Folder, as_json: bool, choice: api.Choice, job: int | None, root: str | None
) -> None:
    """Give a running job other blue switches, or another root, between two of its chunks."""
    if not (root or choice.given or choice.strategy or choice.HasField("k")):
        raise BadInputError("say what to change: -k N, --strategy S, --blue A,B or --root SWITCH")
    with ControllerClient(folder) as client:
        change = client.reallocate(api.ReallocateRequest(job=job, choice=choice, root=root or ""))
        _show_change(change, as_json, "reallocated")


@click.command("rejoin")
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@click.option("--job", type=click.IntRange(1), metavar="J", help="Which job. [default: the one]")
@_common
def rejoin_command(
    folder: Folder, as_json: bool, workers: tuple[str, ...], job: int | None
) -> None:
    """Bring dead workers back into a job that goes on without them, under their ranks.

    Their processes are started anew where they have ended. Without WORKER all that the job goes on
    without come back.
    """
    with ControllerClient(folder) as client:
        change = client.rejoin(api.RejoinRequest(job=job, workers=workers))
        back = ", ".join(change.came_back)
        # Such as those that a link keeps away which nobody had found cut.
        said = f"has {back} again" if back else "has left out again all that came back"
        _show_change(change, as_json, said)


@click.command("counters")
@click.option("--watch", is_flag=True, help="Show them again and again, until interrupted.")
@_common
def counters_command(folder: Folder, as_json: bool, watch: bool) -> None:
    """Show what became of packets at every switch, and the messages on every link."""
    _refuse_endless_json(as_json, watch)
    with ControllerClient(folder) as client:
        if as_json:
            print_json(document(client.counters()))
            return
        from controller.render_live import counters_view

        _show(lambda: counters_view(client.counters()), watch)


@click.command("stop")
@click.option("--job", type=click.IntRange(1), metavar="J", help="Which job. [default: all]")
@_common
def stop_command(folder: Folder, as_json: bool, job: int | None) -> None:
    """Stop jobs, check their sums and links, and take them out of the switches."""
    with ControllerClient(folder) as client:
        reply = client.stop(job)
    if as_json:
        print_json(document(reply))
    else:
        from controller.render_live import stopped_view

        _show(lambda: stopped_view(reply))
    # Wrong sums first: a job that failed may have none.
    for one in sorted(reply.jobs, key=lambda one: one.correct):
        if one.phase == "failed" or not one.correct:
            why = one.detail if one.phase == "failed" else "a sum is wrong"
            raise CheckFailedError(f"job {one.job}: {why}")


def _refuse_endless_json(as_json: bool, watch: bool) -> None:
    if as_json and watch:
        raise BadInputError("--json prints one document: leave out --watch")


def _show(look: Callable[[], RenderableType], watch: bool = False) -> None:
    """Show something once, or again and again until interrupted, which is no error then."""
    console = stdout()
    if not watch:
        with printing():
            console.print(look())
        return
    with suppress(KeyboardInterrupt):
        _watch(console, look)


def _watch(console: Console, look: Callable[[], RenderableType]) -> None:
    """In place on a terminal, one below the other elsewhere."""
    from rich.live import Live

    with (
        Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live
    ):
        while True:
            if live is None:
                with printing():
                    console.print(look())
            else:
                live.update(look(), refresh=True)
            time.sleep(WATCH_S)


def _show_change(change: api.Change, as_json: bool, what: str) -> None:
    if as_json:
        print_json(document(change))
        return
    from controller.render_live import change_view

    _show(lambda: change_view(change, what))
