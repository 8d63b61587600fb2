"""The JSON documents of the commands: one function a command, plain data out."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controller.doctor import Diagnosis
    from controller.measurement import Measurement
    from controller.planning import Plan
    from controller.ranks.launch import LaunchResult
    from controller.running import Aftermath, RunResult

Document = dict[str, Any]


def exact(value: Fraction) -> str:
    """An exact rational as "5" or "7/3"."""
    return str(value)


def number(value: Fraction) -> int | float:
    """An int where the value is one, else the nearest float."""
    return value.numerator if value.denominator == 1 else float(value)


def plan_document(plan: Plan, seconds: float) -> Document:
    """What `bluetree plan --json` prints."""
    return {
        "topology": plan.topology.name,
        "strategy": plan.strategy,
        "k": plan.k,
        "congestion": exact(plan.congestion),
        "congestion_float": float(plan.congestion),
        "blue": plan.blue_names,
        "links": [
            {
                "switch": link.switch,
                "parent": link.parent,
                "messages": link.messages,
                "rate": exact(link.rate),
                "congestion": exact(link.congestion),
            }
            for link in plan.links
        ],
        "seconds": seconds,
    }


def measurement_document(measurement: Measurement) -> Document:
    """The `congestion` and `links` members of a run's document."""
    return {
        "congestion": {
            "predicted": exact(measurement.predicted),
            "measured": exact(measurement.measured),
        },
        "links": [
            {
                "switch": link.switch,
                "parent": link.parent,
                "predicted": link.predicted,
                "measured": number(link.measured),
                "retransmitted": number(link.retransmitted),
                "rate": exact(link.rate),
            }
            for link in measurement.links
        ],
    }


def run_document(result: RunResult) -> Document:
    """What `bluetree run --json` prints."""
    plan = result.plans[0]
    document: Document = {
        "topology": plan.topology.name,
        "target": result.target,
        "op": result.op,
        "strategy": plan.strategy,
        "k": plan.k,
        "blue": plan.blue_names,
        "switches": result.switches,
        "workers": result.workers,
        "chunks": result.chunks,
        "lanes": result.lanes,
        "jobs": result.jobs,
        "correct": result.correct,
        **measurement_document(result.measurement),
        "retransmissions": result.retransmissions,
        "outcomes": dict(result.outcomes),
        "seconds": result.seconds,
        "network_seconds": result.network_seconds,
        "goodput": result.goodput,
    }
    if result.training is not None:
        document["training"] = dataclasses.asdict(result.training)
    if result.aftermath is not None:
        document["failure"] = _failure_document(result.aftermath)
    return document


def _failure_document(after: Aftermath) -> Document:
    """What came of `--fail`."""
    return {
        "part": after.part,
        "fate": after.fate.value,
        "cut_off": list(after.workers),
        "root": after.root,
        "resumed_at": after.resumed_at,
        "new_switches": list(after.switches),
        "blue": None if after.plan is None else after.plan.blue_names,
        "jobs": [dataclasses.asdict(job) for job in after.jobs],
        "text": after.text,
    }


def launch_document(result: LaunchResult) -> Document:
    """What `bluetree launch --json` prints."""
    plan = result.plan
    return {
        "topology": plan.topology.name,
        "target": result.target,
        "strategy": plan.strategy,
        "k": plan.k,
        "blue": plan.blue_names,
        "switches": result.switches,
        "ranks": result.ranks,
        "lost": [{"rank": rank, "ending": how} for rank, how in result.lost.items()],
        "jobs": result.jobs,
        "calls": result.calls,
        "chunks": result.chunks,
        "lanes": result.lanes,
        "retransmissions": result.resent,
        "links": [
            {
                "switch": link.switch,
                "parent": link.parent,
                "messages": result.links[link.switch].first,
                "retransmitted": result.links[link.switch].resent,
            }
            for link in plan.links
        ],
        "outcomes": dict(result.outcomes),
        "seconds": result.seconds,
        "network_seconds": result.network_seconds,
    }


def doctor_document(diagnosis: Diagnosis) -> Document:
    """What `bluetree doctor --json` prints."""
    return {
        "findings": [dataclasses.asdict(finding) for finding in diagnosis.findings],
        "targets": [dataclasses.asdict(verdict) for verdict in diagnosis.targets],
    }
