"""Pictures of plans and runs: which numbers go on the links."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from controller.picture import check_path, draw
from controller.planning import Plan
from controller.running import RunResult

__all__ = ["check_path", "draw_plan", "draw_run"]


def draw_plan(planned: Plan, path: Path) -> None:
    """Draw the tree with the predicted congestion of every link."""
    congestion = {link.switch: link.congestion for link in planned.links}
    _draw(planned, congestion, path, "predicted congestion")


def draw_run(result: RunResult, path: Path) -> None:
    """Draw the tree with the measured congestion of every link."""
    congestion = {link.switch: link.measured / link.rate for link in result.measurement.links}
    _draw(result.last_plan, congestion, path, "measured congestion")


def _draw(planned: Plan, congestion: Mapping[str, Fraction], path: Path, numbers: str) -> None:
    draw(planned.topology, planned.blue_names, congestion, path, numbers=numbers)
