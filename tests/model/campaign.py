"""`make campaign-model`: the protocol's model, explored in full, bound by bound.

Prints one line for each bound: states, transitions, depth, the most messages in flight, seconds,
and the memory so far. With --full the last bound has one loss, one doubled message, one restart and
one reallocation together. Exit code 1 where something is wrong, with the way to it in words.
"""

from __future__ import annotations

import argparse
import resource
import sys
from dataclasses import dataclass

from tests.model.compiled import Exploration, fingerprints
from tests.model.explore import explore
from tests.model.layout import budget, parameters
from tests.model.trace import action_text, state_lines

BOTH, ROOT, CHILD, NONE = 0b11, 0b01, 0b10, 0b00


@dataclass(frozen=True, slots=True)
class Bound:
    """What one exploration covers, and at most how many states are expected."""

    name: str
    p: tuple[int, ...]
    budget: int
    most: int = 4_000_000


def _bound(
    name: str, old: int, new: int, faults: int, most: int = 4_000_000, **more: bool
) -> Bound:
    chunks = 2 if more.pop("short", False) else 3
    return Bound(name, tuple(parameters(chunks, old, new, **more)), faults, most)


def _back(name: str, who: int, faults: int) -> Bound:
    """A worker is away at first, and comes back where the job is reallocated."""
    return Bound(name, tuple(parameters(3, BOTH, BOTH, away=1 << who)), faults)


BOUNDS = (
    _bound("loss", BOTH, ROOT, budget(losses=1)),
    _bound("loss, every order", BOTH, ROOT, budget(losses=1), every_order=True),
    _bound("double", BOTH, ROOT, budget(doubles=1)),
    _bound("early timeout", BOTH, ROOT, budget(early=1)),
    _bound("loss, direct at any time", BOTH, ROOT, budget(losses=1), always_direct=True),
    _bound("2 restarts", BOTH, ROOT, budget(restarts=2)),
    _bound("reallocation", BOTH, ROOT, budget(reallocations=1)),
    _bound("reallocation, every order", BOTH, ROOT, budget(reallocations=1), every_order=True),
    _bound("early timeout, reallocation", BOTH, ROOT, budget(early=1, reallocations=1), 20_000_000),
    _bound("roll back", BOTH, CHILD, budget(reallocations=1, roll_backs=1)),
    _bound("reallocation, loss", CHILD, BOTH, budget(losses=1, reallocations=1)),
    _bound("reallocation, loss", BOTH, NONE, budget(losses=1, reallocations=1)),
    _bound("reallocation, restart", ROOT, BOTH, budget(restarts=1, reallocations=1)),
    _bound("loss, double", BOTH, ROOT, budget(losses=1, doubles=1)),
    _bound("worker goes", BOTH, BOTH, budget(deaths=1)),
    _bound("worker goes", BOTH, ROOT, budget(deaths=1)),
    _bound("worker goes", CHILD, BOTH, budget(deaths=1)),
    _bound("worker goes", NONE, NONE, budget(deaths=1)),
    _bound("worker goes, loss", BOTH, BOTH, budget(deaths=1, losses=1)),
    _bound("worker goes, double", BOTH, BOTH, budget(deaths=1, doubles=1)),
    _bound(
        "worker goes, restart, 2 chunks",
        BOTH,
        BOTH,
        budget(deaths=1, restarts=1),
        20_000_000,
        short=True,
    ),
    _bound("destination anew", BOTH, BOTH, budget(rebirths=1)),
    _bound("destination anew, worker goes", BOTH, BOTH, budget(deaths=1, rebirths=1)),
    _bound(
        "destination anew, worker goes, loss",
        BOTH,
        BOTH,
        budget(deaths=1, rebirths=1, losses=1),
    ),
    _bound("destination anew, loss, double", BOTH, BOTH, budget(rebirths=1, losses=1, doubles=1)),
    _bound(
        "destination anew, loss, reallocation",
        BOTH,
        ROOT,
        budget(rebirths=1, losses=1, reallocations=1),
    ),
    _back("w0 comes back, loss", 0, budget(reallocations=1, losses=1)),
    _back("w2 comes back, loss", 2, budget(reallocations=1, losses=1)),
    _back("w2 comes back, restart", 2, budget(reallocations=1, restarts=1)),
    _back(
        "w2 comes back, destination anew, loss",
        2,
        budget(reallocations=1, rebirths=1, losses=1),
    ),
    _bound(
        "loss, double, restart", BOTH, ROOT, budget(losses=1, doubles=1, restarts=1), 12_000_000
    ),
)
FULL = _bound(
    "loss, double, restart, reallocation",
    BOTH,
    ROOT,
    budget(losses=1, doubles=1, restarts=1, reallocations=1),
    320_000_000,
)
"""All at once. Of so many states memory holds what has to be kept in 12 GiB."""


def _agree() -> None:
    """The interpreted and the compiled model have the same states, up to the mirror."""
    for p, faults in (
        (parameters(3, BOTH, ROOT, every_order=True), budget(losses=1)),
        (parameters(1, BOTH, ROOT, every_order=True), budget(deaths=1, rebirths=1)),
        (parameters(3, BOTH, BOTH, every_order=True, away=4), budget(reallocations=1)),
    ):
        interpreted = explore(p, faults)
        found = Exploration(p, faults, 400_000).run(lambda *_: None)
        assert found.states == len(set(fingerprints(interpreted.states)))
        count = len(interpreted.states)
        print(f"interpreted and compiled rules agree on {count:,} states", flush=True)


def _run(bound: Bound, *, is_loud: bool) -> bool:
    """Explore one bound and print its line; whether nothing is wrong."""

    def tell(depth: int, states: int, frontier: int) -> None:
        if is_loud and sys.stderr.isatty():
            print(f"\rdepth {depth}: {states:,} states, {frontier:,} new ", end="", file=sys.stderr)

    found = Exploration(bound.p, bound.budget, bound.most).run(tell)
    blue = " -> ".join(
        "+".join(name for bit, name in enumerate(("s0", "s1")) if colours >> bit & 1) or "none"
        for colours in bound.p[1:3]
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{bound.name:36} {blue:14} {found.states:>12,} {found.transitions:>14,} {found.depth:>5} "
        f"{found.most_in_flight:>6} {found.seconds:>8.1f} {memory:>6.1f}",
        flush=True,
    )
    if found.trace or not found.is_whole:
        print("\n".join(action_text(label) for label in found.trace))
        print("\n".join(state_lines(found.last)) if found.last else "not explored to the end")
        return False
    return True


def main() -> int:
    """Run the bounds; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make campaign-model")
    parser.add_argument("--full", action="store_true", help="with all faults at once, at length")
    told = parser.parse_args()
    print("3 workers, 2 levels, window 2, 3 chunks; any order of delivery; one line a bound")
    _agree()
    print(
        f"{'at most one each of':36} {'blue':14} {'states':>12} {'transitions':>14} {'depth':>5} "
        f"{'flying':>6} {'seconds':>8} {'GiB':>6}"
    )
    bounds = (*BOUNDS, FULL) if told.full else BOUNDS
    wrong = sum(not _run(bound, is_loud=bound is FULL) for bound in bounds)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
