"""`smc_distributed`: the paper's asynchronous SMC, one agent a switch, by messages alone.

An agent knows its own load, rate and availability, how many children it has and who its parent
is; all else comes in messages, over the links of the tree, in any order. The destination drives:

  census  up    once: the rates below and the most workers below a link of each
  bound   down  in every attempt of the search over X (Algorithm 2, line 4)
  beta    up    SMC-Gather (Algorithm 3): sent once the beta of every child is there
  budget  down  SMC-Color (Algorithm 4), once, after X* is found

The paper hands X and k to every node and leaves the search to Algorithm 2; the census and the
bound messages are what that takes when nobody sees the whole tree.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from controller.placement.budget import checked_budget
from controller.placement.dynamic import (
    Beta,
    Gathered,
    Local,
    least_budget,
    smc_color,
    smc_gather,
)
from controller.placement.loads import Placement
from controller.placement.search import Span, Spans, least_feasible
from controller.placement.tree import Tree

__all__ = ["DistributedPlacement", "smc_distributed"]

_DESTINATION = -1

Schedule = Callable[[int], int]
"""Given how many messages are under way, which of them arrives next."""


@dataclass(frozen=True, slots=True)
class DistributedPlacement(Placement):
    """A placement, and what it took to agree on it.

    Attributes:
        messages: over all links, the one to the destination included.
        attempts: bounds that were tried, X* at the end included.
    """

    messages: int
    attempts: int


@dataclass(frozen=True, slots=True)
class _Census:
    """Of a subtree: its workers, its available switches, by rate the most workers below a link."""

    workers: int
    available: int
    most: dict[Fraction, int]


@dataclass(frozen=True, slots=True)
class _Bound:
    """X, the budget k, and a number above every number of messages."""

    bound: Fraction
    k: int
    infinity: int


@dataclass(frozen=True, slots=True)
class _Budget:
    """i of Algorithm 4: how many switches of the receiver's subtree may be blue."""

    i: int


_Message = _Census | _Bound | Beta | _Budget
_Letter = tuple[int, int, _Message]
"""(sender, receiver, message)."""


def smc_distributed(tree: Tree, k: int, schedule: Schedule | None = None) -> DistributedPlacement:
    """SMC as agents that exchange messages; the same placement as `smc_dp` in whatever order.

    Args:
        schedule: the order in which messages arrive; by default that in which they were sent.

    2 n messages an attempt, and 4 n more for census, the last gathering and colouring.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    asked = checked_budget(k)
    agents = [_Agent(tree, v) for v in range(tree.n)]
    network = _Network(agents, schedule)
    for agent in agents:
        network.send(agent.census_if_complete())
    census = network.delivered()
    assert isinstance(census, _Census)
    budget = min(asked, census.available)
    attempts = 0

    def beta_of_root(bound: Fraction) -> Beta:
        nonlocal attempts
        attempts += 1
        network.send([(_DESTINATION, 0, _Bound(bound, budget, census.workers + 2))])
        beta = network.delivered()
        assert isinstance(beta, list)
        return beta

    def attempt(bound: Fraction) -> Fraction | None:
        enough = least_budget(beta_of_root(bound), census.workers + 2)
        return None if enough is None else bound

    # Sorted, so that the search does not depend on the order of arrival.
    spans = [Span(w.numerator, w.denominator, 0, most) for w, most in sorted(census.most.items())]
    worst = max(Fraction(span.last * span.denominator, span.numerator) for span in spans)
    optimum = worst
    if worst:
        optimum = least_feasible(Spans(tuple(spans)), Fraction(0), worst, attempt)
    enough = least_budget(beta_of_root(optimum), census.workers + 2)
    assert enough is not None
    network.send([(_DESTINATION, 0, _Budget(enough))])
    network.deliver()
    blue = frozenset(v for v, agent in enumerate(agents) if agent.is_blue)
    return DistributedPlacement(
        blue, optimum, "smc-distributed", asked, network.sent.total(), attempts
    )


class _Network:
    """Carries messages; whoever sends over a link is the only one to send there."""

    def __init__(self, agents: list["_Agent"], schedule: Schedule | None) -> None:
        self.sent: Counter[str] = Counter()
        self._agents = agents
        self._schedule = schedule
        self._under_way: list[_Letter] = []
        self._at_destination: _Message | None = None

    def send(self, letters: list[_Letter]) -> None:
        for letter in letters:
            self.sent[type(letter[2]).__name__] += 1
            self._under_way.append(letter)

    def deliver(self) -> None:
        """Until nothing is under way."""
        while self._under_way:
            # One after another the waiting ones all arrive; what they cause joins the next lot.
            waiting, self._under_way = self._under_way, []
            while waiting:
                place = self._schedule(len(waiting)) if self._schedule else -1
                waiting[place], waiting[-1] = waiting[-1], waiting[place]
                sender, receiver, message = waiting.pop()
                if receiver == _DESTINATION:
                    self._at_destination = message
                    continue
                answers = self._agents[receiver].receive(sender, message)
                self.send(answers)
                if self._schedule:
                    waiting += self._under_way
                    self._under_way = []

    def delivered(self) -> _Message:
        """What the destination gets once nothing is under way."""
        self.deliver()
        message, self._at_destination = self._at_destination, None
        assert message is not None
        return message


class _Agent:
    """One switch: what it knows, and what it sends on receiving a message."""

    def __init__(self, tree: Tree, v: int) -> None:
        self._v = v
        self._parent = tree.parent[v]
        # In the fixed order of Sec. IV-B, whatever the order in which they answer.
        self._children = tree.children[v]
        self._rate, self._load, self._available = tree.rate[v], tree.load[v], tree.available[v]
        self._censuses: list[_Census] = []
        self._below = 0
        self._bound: _Bound | None = None
        self._betas: dict[int, Beta] = {}
        self._gathered: Gathered | None = None
        self.is_blue = False

    def receive(self, sender: int, message: _Message) -> list[_Letter]:
        """What the switch sends on."""
        if isinstance(message, _Census):
            self._censuses.append(message)
            return self.census_if_complete() if self._children else []
        if isinstance(message, _Bound):
            self._bound, self._gathered, self._betas = message, None, {}
            onward = [(self._v, child, message) for child in self._children]
            return [*onward, *self._gather_if_complete()]
        if isinstance(message, _Budget):
            return self._color(message.i)
        self._betas[sender] = message
        return self._gather_if_complete()

    def census_if_complete(self) -> list[_Letter]:
        """The census of the own subtree, once those of all children are there."""
        if len(self._censuses) < len(self._children):
            return []
        self._below = self._load + sum(census.workers for census in self._censuses)
        most = {self._rate: self._below}
        for census in self._censuses:
            for rate, workers in census.most.items():
                most[rate] = max(most.get(rate, 0), workers)
        available = self._available + sum(census.available for census in self._censuses)
        return [(self._v, self._parent, _Census(self._below, available, most))]

    def _gather_if_complete(self) -> list[_Letter]:
        if self._bound is None or len(self._betas) < len(self._children):
            return []
        x = self._bound.bound
        cap = x.numerator * self._rate.numerator // (x.denominator * self._rate.denominator)
        local = Local(
            self._load, self._available, self._below, cap, self._bound.k, self._bound.infinity
        )
        self._gathered = smc_gather(local, [self._betas[c] for c in self._children])
        return [(self._v, self._parent, self._gathered.beta)]

    def _color(self, i: int) -> list[_Letter]:
        assert self._gathered is not None
        betas = [self._betas[c] for c in self._children]
        self.is_blue, shares = smc_color(i, self._gathered, betas)
        return [
            (self._v, child, _Budget(share))
            for child, share in zip(self._children, shares, strict=True)
        ]
