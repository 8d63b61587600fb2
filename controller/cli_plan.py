"""`bluetree plan`."""

from __future__ import annotations

import time

import click

from controller.cli_options import Request, print_json, printing, stdout, topology_options
from controller.report import plan_document

__all__ = ["plan_command"]


@click.command("plan")
@topology_options
def plan_command(request: Request) -> None:
    """Choose the blue switches, and predict every link's load."""
    start = time.perf_counter()
    planned = request.planned()
    seconds = time.perf_counter() - start
    request.draw(planned)
    if request.as_json:
        print_json(plan_document(planned, seconds))
        return
    from controller.render import show_plan

    with printing():
        show_plan(stdout(), planned)
