"""`greedy`: k times the single switch that helps most, what one would write without SMC."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from controller.placement.budget import checked_budget
from controller.placement.loads import Placement, loads
from controller.placement.tree import Tree

__all__ = ["greedy"]


def greedy(tree: Tree, k: int) -> Placement:
    """Adds the switch that leaves the least congestion, until k are blue or no message is saved.

    Where no single switch lowers the congestion, because several links are equally congested,
    the one that takes most messages off its link is added. Ties: more messages saved, then the
    lower index. It is not optimal: the sets that are need not be nested in k (Sec. III).

    Cost: O(depth) link updates for each switch added, and O(log n) for each.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    budget = checked_budget(k)
    state = _State(tree)
    while len(state.blue) < budget:
        v = state.best()
        if v is None:
            break
        state.paint(v)
    blue = frozenset(state.blue)
    return Placement(blue, loads(tree, blue).congestion, "greedy", budget)


class _State:
    """A partial placement: messages on every link, and what each switch would save."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.blue: set[int] = set()
        self._messages = list(tree.subtree_loads())
        # Integers in the order of the congestions: different m / w differ by at least
        # 1 / (a a'), so they differ after scaling and rounding down too.
        rates = tree.distinct_rates
        scale = 2 * max(rate.numerator for rate in rates) ** 2
        self._over = [rate.denominator * scale for rate in rates]
        self._under = [rate.numerator for rate in rates]
        # Heaps of (-value, switch); an entry counts if its value is still the switch's.
        self._congested = [(-self._key(v, m), v) for v, m in enumerate(self._messages)]
        self._worths = [(-self._saved(v), v) for v in range(tree.n) if self._saved(v)]
        heapify(self._congested)
        heapify(self._worths)
        # Pre-order numbers: the subtree of v is first[v] .. first[v] + size[v] - 1.
        self._first, self._size = [0] * tree.n, [1] * tree.n
        for place, v in enumerate(reversed(tree.order)):
            self._first[v] = place
        for v in tree.order[:-1]:
            self._size[tree.parent[v]] += self._size[v]
        # The switch in the subtree of v whose flip would lower link v most, and by how much.
        self._flip: list[tuple[int, int] | None] = [None] * tree.n
        for v in tree.order:
            self._flip[v] = self._best_flip(v)

    def best(self) -> int | None:
        """The next switch to add."""
        while self._worths and -self._worths[0][0] != self._saved(self._worths[0][1]):
            heappop(self._worths)
        if not self._worths:
            return None
        popped: list[tuple[int, int]] = []
        v = self._improving(self._falling(popped))
        for entry in popped:
            heappush(self._congested, entry)
        return self._worths[0][1] if v is None else v

    def paint(self, v: int) -> None:
        """Make v blue: the links from v up to the next blue switch carry less."""
        saved = self._saved(v)
        self.blue.add(v)
        self._flip[v] = None
        self._lower(v, saved)
        above = self._tree.parent[v]
        while above >= 0 and above not in self.blue:
            self._lower(above, saved)
            self._flip[above] = self._best_flip(above)
            if worth := self._saved(above):
                heappush(self._worths, (-worth, above))
            above = self._tree.parent[above]

    def _lower(self, v: int, saved: int) -> None:
        self._messages[v] -= saved
        heappush(self._congested, (-self._key(v, self._messages[v]), v))

    def _key(self, v: int, messages: int) -> int:
        kind = self._tree.rate_index[v]
        return messages * self._over[kind] // self._under[kind]

    def _saved(self, v: int) -> int:
        """What the link of v carries less once v is blue."""
        if not self._tree.available[v] or v in self.blue:
            return 0
        return max(self._messages[v] - 1, 0)

    def _best_flip(self, v: int) -> tuple[int, int] | None:
        """(saved, -switch) of the best at or below red v: saves most, then has the lower index."""
        flips = (self._flip[child] for child in self._tree.children[v])
        below = max(filter(None, flips), default=None)
        if not self._saved(v):
            return below
        # None below saves more, as v sends all that they send.
        return max((self._saved(v), -v), below or (0, 0))

    def _falling(self, popped: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """(key, link) from the most congested down; what is popped is kept for the next time."""
        seen: set[int] = set()
        while self._congested:
            entry = heappop(self._congested)
            key, v = -entry[0], entry[1]
            if v not in seen and key == self._key(v, self._messages[v]):
                seen.add(v)
                popped.append(entry)
                yield key, v

    def _improving(self, falling: Iterator[tuple[int, int]]) -> int | None:
        """The switch that lowers the congestion most, or None where none lowers it.

        A switch relieves the links on its way up to the next blue switch, so it lowers the
        congestion to below that of the j most congested links only if those lie on its way, and
        then the best is the best flip below the lowest of them. More links to relieve, less to
        choose from: `rest`, the next congestion, falls with j, and what the flip leaves on the j
        links rises. The best j is where they cross.
        """
        chain: list[int] = []  # the most congested links, all on one way up
        flips: list[tuple[int, int]] = []  # for each number of links, the best flip
        rest: list[int] = []  # for each number of links, the key of the next one
        top_key = 0
        lowest = uppermost = -1
        for key, u in falling:
            if chain:
                rest.append(key)
                if key <= self._key(chain[0], self._messages[chain[0]] - flips[-1][0]):
                    break
            else:
                top_key, lowest, uppermost = key, u, self._segment_top(u)
            place = self._extended(lowest, uppermost, u)
            if place is None or (flip := self._flip[place]) is None:
                break
            lowest = place
            chain.append(u)
            flips.append(flip)
        rest = ([*rest, 0])[: len(chain)]
        j = self._crossing(chain, flips, rest)
        choices = [
            max(rest[i], self._left_on(chain[: i + 1], flips[i][0]))
            for i in (j - 1, j)
            if 0 <= i < len(chain)
        ]
        value = min(choices, default=top_key)
        if value >= top_key:
            return None
        # Of those that reach it, the one that saves most: more to choose from with fewer links.
        return -next(flip for flip, key in zip(flips, rest, strict=True) if key <= value)[1]

    def _crossing(self, chain: list[int], flips: list[tuple[int, int]], rest: list[int]) -> int:
        """The first i at which the flip leaves no less on the chain than lies on the rest."""
        below, above = 0, len(chain)
        while below < above:
            i = (below + above) // 2
            if self._left_on(chain[: i + 1], flips[i][0]) >= rest[i]:
                above = i
            else:
                below = i + 1
        return below

    def _left_on(self, links: list[int], saved: int) -> int:
        return max(self._key(u, self._messages[u] - saved) for u in links)

    def _segment_top(self, v: int) -> int:
        """The highest link that a switch at v relieves."""
        above = self._tree.parent[v]
        while above >= 0 and above not in self.blue:
            v, above = above, self._tree.parent[above]
        return v

    def _extended(self, lowest: int, uppermost: int, u: int) -> int | None:
        """The lowest link of a way up that has u and all from `lowest` to `uppermost`, or None."""
        if self._within(u, lowest):
            return lowest if self._within(uppermost, u) and lowest not in self.blue else None
        if not self._within(lowest, u):
            return None
        v = u
        while v != lowest:
            if v in self.blue:
                return None
            v = self._tree.parent[v]
        return u if lowest not in self.blue else None

    def _within(self, above: int, v: int) -> bool:
        """Whether v lies in the subtree of `above`."""
        return 0 <= self._first[v] - self._first[above] < self._size[above]
