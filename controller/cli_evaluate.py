"""`bluetree evaluate`: the figures of the paper, as CSV, pictures and a text about its claims."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from controller import targets
from controller.cli_options import SEED, debug_option, json_option
from controller.errors import BadInputError, EnvironmentLacksError
from evaluation.corpus import Text, default_text, text_of_file
from evaluation.errors import EvaluationError, MissingError
from evaluation.output import claims_text
from evaluation.paper import FIGURES, Evaluation, evaluate
from evaluation.settings import Settings
from evaluation.sweep import DaskEngine, Engine, LocalEngine

__all__ = ["evaluate_command"]

_MOST_LEVELS = 12


@click.command("evaluate")
@click.argument("figure", type=click.Choice([*FIGURES, "all"]), metavar="FIGURE")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Where the files go; a run that was interrupted goes on from what is there.",
)
@click.option("--repeats", type=click.IntRange(1, 1000), default=10, show_default=True)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes; default: all cores.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of all chance.")
@click.option(
    "--levels",
    type=click.IntRange(4, _MOST_LEVELS),
    default=8,
    show_default=True,
    help="Of the binary tree: 8 are the paper's 255 switches.",
)
@click.option(
    "--text",
    "text_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What word count counts: a text file or a MediaWiki XML dump, bzip2 or not; default: the "
    "documentation of installed packages.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    default="local",
    show_default=True,
    help="Processes of this machine, or the workers of a Dask cluster.",
)
@click.option(
    "--target",
    type=click.Choice([targets.FABRIC, *targets.TARGETS_OVER_MININET]),
    default=targets.FABRIC,
    show_default=True,
    help="Of tensorexpress: where its switches are; one training after the other over Mininet.",
)
@click.option("--scheduler", metavar="ADDR", help="Of the Dask cluster, like tcp://host:8786.")
@json_option
@debug_option
def evaluate_command(
    figure: str,
    out: Path,
    repeats: int,
    jobs: int | None,
    seed: int,
    levels: int,
    text_file: Path | None,
    engine: str,
    target: str,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Repeat the papers' evaluation: FIGURE is fig1 to fig6, tensorexpress, or all of them."""
    start = time.perf_counter()
    names = list(FIGURES) if figure == "all" else [figure]
    if target != targets.FABRIC:
        names = [_on_target(figure, target, engine)]
        jobs = 1
    settings = Settings(repeats=repeats, seed=seed, levels=levels)
    try:
        text = default_text() if text_file is None else text_of_file(text_file)
        done = _evaluate(names, out, settings, text, _engine(engine, scheduler, jobs))
    except EvaluationError as error:
        raise BadInputError(str(error)) from error
    except MissingError as error:
        raise EnvironmentLacksError(str(error)) from error
    seconds = time.perf_counter() - start
    if as_json:
        document = _document(done, settings, seconds)
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for output, files in done.outputs:
        click.echo(claims_text(output))
        click.echo(f"  files    {', '.join(file.name for file in files)}\n")
    click.echo(
        f"{len(done.outputs)} figures in {out}: {done.computed} cells computed, {done.reused} "
        f"found there, {seconds:.1f} s"
    )


def _on_target(figure: str, target: str, engine: str) -> str:
    """The figure's name on a target over Mininet."""
    if figure != "tensorexpress":
        raise BadInputError(f"--target {target}: only tensorexpress runs there; leave it out")
    if engine != "local":
        raise BadInputError(f"--target {target}: it runs on this machine; leave --engine out")
    reason = targets.why_not(target)
    if reason is not None:
        raise EnvironmentLacksError(reason)
    return f"tensorexpress-{target}"


def _engine(kind: str, scheduler: str | None, jobs: int | None) -> Engine:
    if kind == "dask":
        if scheduler is None:
            raise BadInputError("--engine dask: give the cluster's address by --scheduler ADDR")
        if jobs is not None:
            raise BadInputError("--jobs: the Dask cluster decides how many run; leave it out")
        return DaskEngine(scheduler)
    if scheduler is not None:
        raise BadInputError("--scheduler: only --engine dask has one; add it, or leave this out")
    return LocalEngine(jobs or os.cpu_count() or 1)


def _evaluate(
    names: list[str], out: Path, settings: Settings, text: Text, engine: Engine
) -> Evaluation:
    """`evaluate` under a progress bar on stderr."""
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("evaluate", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done if total else 1, total=total or 1)

        return evaluate(names, out, settings, text, engine, progress)


def _document(done: Evaluation, settings: Settings, seconds: float) -> dict[str, Any]:
    return {
        "repeats": settings.repeats,
        "seed": settings.seed,
        "levels": settings.levels,
        "figures": [
            {
                "name": output.name,
                "title": output.title,
                "setting": output.setting,
                "claims": [
                    {"claim": claim.text, "agrees": claim.holds, "evidence": claim.evidence}
                    for claim in output.claims
                ],
                "findings": list(output.findings),
                "files": [str(file) for file in files],
            }
            for output, files in done.outputs
        ],
        "cells": {"computed": done.computed, "reused": done.reused},
        "seconds": seconds,
    }
