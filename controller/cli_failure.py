"""What `bluetree run` is asked to let fail: `--fail`, `--fail-worker` and what goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.errors import BadInputError
from controller.running import Failure
from topologies.network import wire
from topologies.topology import Topology

__all__ = ["asked_failure"]

_FORMS = {
    "--fail": "SWITCH@FRACTION, such as agg0-0@0.5, or the same of a link, such as "
    "agg0-0-core0@0.5, or destination@0.5",
    "--fail-worker": "WORKER@FRACTION, such as w3@0.5",
    "--rejoin-worker": "WORKER@FRACTION, such as w3@0.8",
}


def asked_failure(
    topology: Topology,
    fail: Sequence[str],
    fail_worker: Sequence[str],
    on_worker_loss: str,
    rejoin_worker: Sequence[str],
) -> Failure | None:
    """What the options of these names ask for, those that are given at most once as often as they
    were; None: nothing fails.

    BadInputError names the option and what is wrong with it; whether there is such a part is found
    out elsewhere.
    """
    if fail and fail_worker:
        raise BadInputError("--fail, --fail-worker: one thing fails at a time; leave one out")
    failure = None
    goes_on = on_worker_loss == "continue"
    if text := _only("--fail", fail):
        failure = Failure(*_part_at("--fail", text))
    elif text := _only("--fail-worker", fail_worker):
        part, share = _part_at("--fail-worker", text)
        failure = Failure(part, share, is_worker=True, goes_on=goes_on)
    if goes_on and not fail_worker:
        raise BadInputError("--on-worker-loss: say which one dies with --fail-worker")
    if text := _only("--rejoin-worker", rejoin_worker):
        return _returning(topology, failure, text)
    return failure


def _returning(topology: Topology, failure: Failure | None, text: str) -> Failure:
    """A failure whose worker comes back."""
    worker, share = _part_at("--rejoin-worker", text)
    said = f"--rejoin-worker {text}:"
    if failure is None or not failure.is_worker or failure.part != worker:
        workers = wire(topology).workers
        if worker not in {host.name for host in workers}:
            there = f"there are {workers[0].name} to {workers[-1].name}" if workers else "none"
            raise BadInputError(f"{said} {topology.name} has no such worker; {there}")
        if failure is None or not failure.is_worker:
            raise BadInputError(
                f"{said} who comes back has died before: add --fail-worker {worker}@FRACTION "
                "--on-worker-loss continue"
            )
        raise BadInputError(
            f"{said} it is {failure.part} that dies, by --fail-worker; name the same worker twice"
        )
    if not failure.goes_on:
        raise BadInputError(
            f"{said} the run fails when {worker} dies; add --on-worker-loss continue"
        )
    if share < failure.fraction:
        raise BadInputError(f"{said} it dies later, at {failure.fraction:g}")
    return replace(failure, returns=share)


def _only(option: str, given: Sequence[str]) -> str | None:
    """The value of an option that may be given once."""
    if len(given) > 1:
        back = option == "--rejoin-worker"
        why = "one worker comes back, once" if back else "one thing fails at a time"
        raise BadInputError(f"{option} {given[0]}, {option} {given[1]}: {why}; leave one out")
    return given[0] if given else None


def _part_at(option: str, text: str) -> tuple[str, float]:
    """A name, and the share of all chunks behind its last @."""
    part, _, behind = text.rpartition("@")
    try:
        share = float(behind)
    except ValueError:
        part, share = "", 0.0
    if not part:
        raise BadInputError(f"{option} {text}: write {_FORMS[option]}")
    # NaN compares with nothing.
    if not 0 <= share <= 1:
        raise BadInputError(
            f"{option} {text}: {behind} is not a share of all chunks, which is from 0 to 1"
        )
    return part, share
