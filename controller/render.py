"""Rich tables of what the commands found: for people; scripts take `--json`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from controller.report import exact
from p4src.builds import NARROW

if TYPE_CHECKING:
    from controller.doctor import Diagnosis
    from controller.measurement import MeasuredLink, Measurement
    from controller.planning import Plan
    from controller.ranks.launch import LaunchResult
    from controller.running import RunResult, Training

MAX_ROWS = 64
"""Longer link tables show the most congested links; `--json` has all."""
_DECIMALS = 2


def show_plan(console: Console, plan: Plan) -> None:
    """The placement, and the links from the most congested down."""
    console.print(
        f"[bold]{escape(plan.topology.name)}[/]: {plan.strategy}, k = {plan.k}, "
        f"congestion [bold]{_shown(plan.congestion)}[/]"
    )
    console.print(f"blue ({len(plan.blue)}): {_names(plan.blue_names)}")
    table = Table("switch", "parent", "colour", "messages", "rate", "congestion")
    links = sorted(plan.links, key=lambda link: -link.congestion)
    blue = set(plan.blue_names)
    for link in links[:MAX_ROWS]:
        table.add_row(
            escape(link.switch),
            escape(link.parent or "destination"),
            _colour(link.switch in blue),
            str(link.messages),
            exact(link.rate),
            _shown(link.congestion),
        )
    console.print(table)
    _say_cut(console, len(links))


def show_run(console: Console, result: RunResult) -> None:
    """The links, predicted and measured, and the run's own verdict."""
    plan = result.last_plan
    if result.training is not None:
        show_training(console, result.training)
    console.print(
        f"[bold]{escape(plan.topology.name)}[/] on {result.target}: {_switches(result)}, "
        f"{result.workers} workers, {result.jobs} x {result.chunks} chunks, {result.op}, "
        f"{plan.strategy}, k = {plan.k}{_lanes(result.lanes)}"
    )
    console.print(f"blue ({len(plan.blue)}): {_names(plan.blue_names)}")
    show_links(console, result.measurement, set(plan.blue_names))
    sums = "[green]every sum right[/]" if result.correct else "[red]WRONG SUMS[/]"
    congestion = (
        f"congestion predicted {_shown(result.measurement.predicted)}, "
        f"measured {_shown(result.measurement.measured)}"
    )
    console.print(f"{sums}; {congestion}; {counted(result.retransmissions, 'retransmission')}")
    for note in () if result.aftermath is None else result.aftermath.notes:
        console.print(note, markup=False, soft_wrap=True)
    console.print(
        f"{result.seconds:.1f} s; on the network's clock {result.network_seconds * 1e3:.3f} ms, "
        f"goodput {result.goodput / 1e6:.1f} Mbit/s a worker"
    )


def show_launch(console: Console, result: LaunchResult) -> None:
    """What the ranks' calls made of the network."""
    plan = result.plan
    console.print(
        f"[bold]{escape(plan.topology.name)}[/] on {result.target}: {result.switches} switches, "
        f"{result.ranks} ranks, {plan.strategy}, k = {plan.k}{_lanes(result.lanes)}"
    )
    console.print(f"blue ({len(plan.blue)}): {_names(plan.blue_names)}")
    console.print(
        f"{counted(result.calls, 'call')}, {counted(result.chunks, 'chunk')}, "
        f"{counted(result.resent, 'retransmission')}, "
        f"{result.network_seconds:.3f} s of network, {result.seconds:.2f} s in all"
    )
    for rank, how in result.lost.items():
        console.print(f"rank {rank} {how}: the others went on without it")


def show_links(console: Console, measurement: Measurement, blue: set[str]) -> None:
    """Messages a chunk on every link, the most congested first."""
    table = Table(
        "switch", "parent", "colour", "predicted", "measured", "resent", "rate", "congestion"
    )
    links = sorted(measurement.links, key=lambda link: -(link.measured / link.rate))
    for link in links[:MAX_ROWS]:
        table.add_row(
            escape(link.switch),
            escape(link.parent or "destination"),
            _colour(link.switch in blue),
            str(link.predicted),
            _measured(link),
            _rounded(link.retransmitted),
            exact(link.rate),
            _shown(link.measured / link.rate),
        )
    console.print(table)
    _say_cut(console, len(links))


def show_training(console: Console, training: Training) -> None:
    """Accuracy by training epoch, and the same gradients under every strategy."""
    for i, accuracy in enumerate(training.accuracy, start=1):
        console.print(f"training epoch {i:2d}: {accuracy:7.2%} of the held-out images right")
    same = (
        "[green]bit for bit the weights of the same training without a network[/]"
        if training.identical
        else "[red]NOT the weights of the same training without a network[/]"
    )
    console.print(same)
    if training.strategies:
        table = Table("strategy", "predicted", "measured", "blue")
        for row in training.strategies:
            table.add_row(row.strategy, row.predicted, row.measured, _names(list(row.blue)))
        console.print("congestion of the same gradients under each strategy:")
        console.print(table)


def show_doctor(console: Console, diagnosis: Diagnosis) -> None:
    """What was found, and which targets work."""
    table = Table("what", "found", "detail", "needed for")
    for finding in diagnosis.findings:
        mark = "[green]yes[/]" if finding.found else "[yellow]no[/]"
        table.add_row(finding.name, mark, escape(finding.detail), escape(finding.needed_for))
    console.print(table)
    for verdict in diagnosis.targets:
        works = "[green]works[/]" if verdict.works else "[yellow]does not work[/]"
        console.print(f"target {verdict.target}: {works} ({escape(verdict.why)})")


def counted(number: int, noun: str) -> str:
    """A number of things, in words: "1 chunk", "2 chunks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _lanes(lanes: int) -> str:
    """Where a message has other than the usual number of values: how many."""
    return "" if lanes == NARROW.lanes else f", {lanes} lanes"


def _switches(result: RunResult) -> str:
    """How many switches there are, and how many of them the tree has where that is fewer."""
    in_tree = len(result.measurement.links)
    rest = f" ({in_tree} in the tree)" if in_tree < result.switches else ""
    return f"{result.switches} switches{rest}"


def _rounded(value: Fraction) -> str:
    """An integer as it is, anything else with a few decimals."""
    return exact(value) if value.denominator == 1 else f"{float(value):.{_DECIMALS}f}"


def _colour(blue: bool) -> str:
    return "[blue]blue[/]" if blue else "[red]red[/]"


def _measured(link: MeasuredLink) -> str:
    shown = _rounded(link.measured)
    return shown if link.measured == link.predicted else f"[yellow]{shown}[/]"


def _shown(value: Fraction) -> str:
    text = exact(value)
    return text if value.denominator == 1 else f"{text} ({float(value):.3f})"


def _names(names: list[str], shown: int = 12) -> str:
    more = f", ... ({len(names) - shown} more)" if len(names) > shown else ""
    return escape(", ".join(names[:shown]) + more) or "none"


def _say_cut(console: Console, rows: int) -> None:
    if rows > MAX_ROWS:
        console.print(f"(the {MAX_ROWS} most congested of {rows} links; --json has all)")
