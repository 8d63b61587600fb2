"""The real program, workers and destination against an adversary who has the network.

The adversary delivers what is under way in any order, loses it, doubles it, sends anything once
more that ever was under way, lets time pass, starts a switch anew with empty registers, or even
without its entries until they are written again. It kills workers, or takes them for dead while
they go on, and lets them come back; kills the destination, also while it records a sum, which then
starts anew from its journal, or, as long as nobody has left, without. It tells each host in its own
time of changes of the blue switches and of who is left out, step by step, and takes some back.
Whatever it does, nobody may ever hold a wrong sum; and once it stops, everyone who takes part must
come to have all of them. Machines turn to direct messages at once, so that parts and sums of parts
meet at the destination.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from p4src.constants import LANES
from tests.e2e.adversary_world import CHUNKS, NETWORK, PLAN, SWITCHES, Change, Leave, World

COLOURS = [frozenset[int](), frozenset({0}), frozenset({1}), frozenset({0, 1})]
MOST_STEPS = 20_000
MOST_IN_FLIGHT = 200
_PICK = st.integers(0, 1 << 16)


class Adversary(RuleBasedStateMachine):
    """What may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @property
    def flight(self) -> list[tuple[str, int, bytes]]:
        """What is under way."""
        return self.world.flight

    @initialize(events=st.integers(0, 60), who=st.integers(0, 3), returns=st.booleans())
    def begin(self, events: int, who: int, returns: bool) -> None:
        """Before the adversary comes, one worker may have been left out, and be on its way back."""
        self.go_well(events)
        if who < len(self.world.members):
            name = self.world.members[who]
            self.world.begin_leave(name)
            while self.world.step is not None:
                self.world.go_on(0)
            while not self.world.has_drained:
                self.go_well(1)
            self.world.settle()
            if returns:
                self.world.begin_change(PLAN.blue, name)

    @precondition(lambda self: self.flight)
    @rule(pick=_PICK)
    def deliver(self, pick: int) -> None:
        """Something under way arrives."""
        self.world.arrive(pick % len(self.flight))

    @rule(events=st.integers(1, 30))
    def go_well(self, events: int) -> None:
        """For a while all that is under way arrives, oldest first, and time passes in between."""
        for _ in range(events):
            if self.flight:
                self.world.arrive(0)
            else:
                self.world.pass_time()

    @precondition(lambda self: self.flight)
    @rule(pick=_PICK)
    def lose(self, pick: int) -> None:
        """Something under way is lost."""
        del self.flight[pick % len(self.flight)]

    @precondition(lambda self: 0 < len(self.flight) < MOST_IN_FLIGHT)
    @rule(pick=_PICK)
    def double(self, pick: int) -> None:
        """Something under way arrives twice."""
        self.flight.append(self.flight[pick % len(self.flight)])

    @precondition(lambda self: len(self.flight) < MOST_IN_FLIGHT)
    @rule(pick=_PICK)
    def replay(self, pick: int) -> None:
        """Something that was under way long ago, of whatever epoch, comes once more."""
        past = self.world.past
        self.flight.append(past[pick % len(past)])

    @precondition(lambda self: len(self.flight) < MOST_IN_FLIGHT)
    @rule()
    def pass_time(self) -> None:
        """The next deadline comes, before anything arrives."""
        self.world.pass_time()

    @rule(name=st.sampled_from(sorted(SWITCHES)), bare=st.booleans())
    def restart_switch(self, name: str, bare: bool) -> None:
        """A switch starts anew: its registers are empty, its entries there again or not."""
        self.world.restart_switch(name, bare=bare)

    @precondition(lambda self: self.world.step is None and len(self.world.plans) == 1)
    @rule(blue=st.sampled_from(COLOURS), back=_PICK)
    def begin_change(self, blue: frozenset[int], back: int) -> None:
        """The blue switches change; where workers were left out, one of them may come back."""
        gone = sorted(self.world.gone)
        names = [*(NETWORK.workers[rank].name for rank in gone), None]
        self.world.begin_change(blue, names[back % len(names)])

    @precondition(lambda self: self.world.step is not None)
    @rule(picks=st.lists(_PICK, min_size=1, max_size=5))
    def go_on(self, picks: list[int]) -> None:
        """The controller takes its next steps."""
        for pick in picks:
            self.world.go_on(pick)

    @precondition(lambda self: isinstance(self.world.step, Change) and self.world.step.first < 0)
    @rule()
    def take_change_back(self) -> None:
        """A change is given up."""
        self.world.take_back()

    @precondition(lambda self: self.world.step is None and len(self.world.plans) > 1)
    @rule()
    def settle(self) -> None:
        """The entries of old epochs go, if they may."""
        if self.world.has_drained:
            self.world.settle()

    @precondition(lambda self: self.world.recalls)
    @rule(pick=_PICK)
    def kill_worker(self, pick: int) -> None:
        """A worker dies, but not the last one that takes part."""
        world = self.world
        names = [name for name in sorted(world.workers) if world.staying != [name]]
        if names:
            world.kill_worker(names[pick % len(names)])

    @precondition(lambda self: self.world.step is None and self.world.recalls)
    @rule(pick=_PICK)
    def take_for_dead(self, pick: int) -> None:
        """The others are to go on without a worker, which is dead, or goes on too."""
        world = self.world
        names = [name for name in (*world.members, *world.dead) if world.staying != [name]]
        if names:
            world.begin_leave(names[pick % len(names)])

    @rule(pick=_PICK, torn=_PICK, forgets=st.integers(0, 3))
    def restart_destination(self, pick: int, torn: int, forgets: int) -> None:
        """The destination is killed, perhaps busy, and starts anew from its journal, or without."""
        if forgets == 0 and self._may_forget:
            self.world.forget()
            return
        own = NETWORK.destination.name
        for_it = [None, *(i for i, (node, *_) in enumerate(self.flight) if node == own)]
        self.world.restart_destination(for_it[pick % len(for_it)], torn % (2 * 4 * LANES))

    @precondition(
        lambda self: (
            isinstance(self.world.step, Leave)
            and self.world.step.term is not None
            and not self.world.step.followed
        )
    )
    @rule()
    def lose_decision(self) -> None:
        """The destination is killed when it has decided and nobody knows."""
        self.world.lose_decision()

    @property
    def _may_forget(self) -> bool:
        """Whether all the destination had can come again: from everyone, as nobody has left."""
        world = self.world
        has_left = any(term.absent for term, _ in world.terms)
        return not has_left and not world.dead and not isinstance(world.step, Leave)

    @invariant()
    def no_sum_is_wrong(self) -> None:
        """What anyone has is the one sum of its chunk, also who was left out."""
        world = self.world
        sums = [world.oracle.total(chunk) for chunk in range(CHUNKS)]
        nothing = [0] * LANES
        for worker in world.workers.values():
            got = worker.results.tolist()
            for row, expected in zip(got, sums[CHUNKS - len(got) :], strict=True):
                assert row in (expected, nothing)
        for row, expected in zip(world.destination.sums.tolist(), sums, strict=True):
            assert row in (expected, nothing)

    def teardown(self) -> None:
        """Left alone, everyone who takes part comes to have every sum."""
        world = self.world
        for name in sorted(world.bare):
            world.restart_switch(name, bare=False)
        for _ in range(MOST_STEPS):
            if world.step is not None:
                world.go_on(0)
            elif world.dead:
                world.begin_leave(world.dead[0])
            elif len(world.plans) > 1 and world.has_drained:
                world.settle()
            elif self._is_over():
                break
            if self.flight:
                world.arrive(0)
            else:
                world.pass_time()
        assert self._is_over()
        sums = [world.oracle.total(chunk) for chunk in range(CHUNKS)]
        assert world.destination.sums.tolist() == sums
        for name in world.members:
            got = world.workers[name].results.tolist()
            assert got == sums[CHUNKS - len(got) :]
        self.no_sum_is_wrong()

    def _is_over(self) -> bool:
        world = self.world
        is_done = all(world.workers[name].done for name in world.members)
        return len(world.plans) == 1 and world.destination.done and is_done


TestAdversary = Adversary.TestCase
TestAdversary.settings = settings(
    max_examples=int(os.environ.get("ADVERSARY_EXAMPLES", "30")),
    stateful_step_count=80,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
