"""Deep, wide and large trees: no recursion, no listing of candidates, no overflow.

How long things take is measured by `make bench-placement`, not here.
"""

import random
from fractions import Fraction

import numpy as np
import pytest

from controller.placement import STRATEGIES, Tree, TreeArrays, loads, smc, smc_arrays, smc_dp
from controller.placement.flips import COMPILED_FROM, fewest_blue
from controller.placement.search import candidate_spans, least_feasible

FEW_RATES = [Fraction(1), Fraction(3, 2), Fraction(9, 4), Fraction(7, 3)]
SLOW = {"smc-dp": 1, "smc-distributed": 1}
SMALL_ONLY = ("brute-force", "milp")


def binary(n: int, seed: int, share: float) -> Tree:
    rng = random.Random(seed)
    return Tree(
        [-1] + [(v - 1) // 2 for v in range(1, n)],
        [rng.choice(FEW_RATES) for _ in range(n)],
        [rng.randint(1, 9) if v >= n // 2 else 0 for v in range(n)],
        [rng.random() < share for _ in range(n)],
    )


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s not in SMALL_ONLY])
@pytest.mark.parametrize("shape", ["path", "star"])
def test_twenty_thousand_switches_in_a_row_or_around_one(strategy: str, shape: str) -> None:
    n = 20_000
    parent = [-1] + [v - 1 if shape == "path" else 0 for v in range(1, n)]
    load = [0 if v % 1000 else 3 for v in range(n)]
    tree = Tree(parent, [1] * n, load, [v % 3 == 0 for v in range(n)])
    placement = STRATEGIES[strategy](tree, SLOW.get(strategy, 10))
    assert loads(tree, placement.blue).congestion == placement.congestion


def extreme(shape: str, n: int, *, rates_of_their_own: bool) -> TreeArrays:
    """A path or a star, 10^9 workers at every switch, rates of twelve digits."""
    draw = np.random.default_rng(7)
    parent = np.arange(-1, n - 1) if shape == "path" else np.zeros(n, np.int64)
    parent[0] = -1
    if rates_of_their_own:
        numerator, denominator = draw.integers(10**11, 10**12, (2, n))
    else:
        numerator = draw.choice([999_999_999_989, 123_456_789_012], n)
        denominator = np.full(n, 999_999_999_961)
    available = draw.random(n) < 0.5
    available[0] = False
    return TreeArrays(parent, numerator, denominator, np.full(n, 10**9), available)


@pytest.mark.parametrize("rates_of_their_own", [False, True])
@pytest.mark.parametrize("shape", ["path", "star"])
@pytest.mark.parametrize("k", [3, 1024])
def test_a_million_switches_reach_what_is_claimed(
    shape: str, k: int, *, rates_of_their_own: bool
) -> None:
    tree = extreme(shape, 1_000_000, rates_of_their_own=rates_of_their_own)
    placement = smc_arrays(tree, k)
    assert len(placement.blue) == k
    blue = np.zeros(tree.n, np.bool_)
    blue[list(placement.blue)] = True
    assert tree.available[blue].all()
    parent, sent = tree.parent.tolist(), tree.load.tolist()
    for v in range(tree.n - 1, 0, -1):
        sent[parent[v]] += 1 if blue[v] else sent[v]
    sent = np.where(blue, 1, np.array(sent, np.float64))
    congestion = (sent / (tree.rate_numerator / tree.rate_denominator)).max()
    assert float(placement.congestion) == pytest.approx(congestion, rel=1e-12)


@pytest.mark.parametrize("rates_of_their_own", [False, True])
@pytest.mark.parametrize("shape", ["path", "star"])
@pytest.mark.parametrize("k", [3, 1024])
def test_nothing_below_the_compiled_optimum_is_feasible(
    shape: str, k: int, *, rates_of_their_own: bool
) -> None:
    """The compiled path is judged by the pass in Python's own integers."""
    arrays = extreme(shape, 2 * COMPILED_FROM, rates_of_their_own=rates_of_their_own)
    rate = map(Fraction, arrays.rate_numerator.tolist(), arrays.rate_denominator.tolist())
    tree = Tree(arrays.parent.tolist(), list(rate), arrays.load.tolist(), arrays.available.tolist())
    placement = smc(tree, k)
    assert placement == smc_arrays(arrays, k)
    optimum = placement.congestion
    assert loads(tree, placement.blue).congestion == optimum
    assert fewest_blue(tree, optimum, k) == placement.blue
    assert fewest_blue(tree, optimum - Fraction(1, 10**30), k) is None
    assert fewest_blue(tree, optimum, len(placement.blue) - 1) is None


def test_smc_and_smc_dp_agree_on_the_papers_size() -> None:
    for seed, k in ((1, 1), (2, 4), (3, 16), (4, 32)):
        tree = binary(255, seed, share=0.8)
        one, other = smc(tree, k), smc_dp(tree, k)
        assert (one.congestion, len(one.blue)) == (other.congestion, len(other.blue))


@pytest.mark.parametrize("distinct", [1, 3, 60, 2000])
def test_the_search_needs_about_log2_of_the_candidates(distinct: int) -> None:
    rng = random.Random(distinct)
    rates = [Fraction(rng.randint(1, 10**6), rng.randint(1, 10**6)) for _ in range(distinct)]
    n = max(distinct, 10)
    tree = Tree(
        [-1, *range(n - 1)], [rng.choice(rates) for _ in range(n)], [10**6] + [1000] * (n - 1)
    )
    candidates = candidate_spans(tree)
    worst = loads(tree, ()).congestion
    for part in (Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 3), Fraction(99, 100)):
        threshold, bounds = worst * part, []

        def attempt(bound: Fraction) -> Fraction | None:
            bounds.append(bound)  # noqa: B023 - called in this turn of the loop only
            return bound if bound >= threshold else None  # noqa: B023 - the same

        found = least_feasible(candidates, Fraction(0), worst, attempt)
        feasible = [
            Fraction(span.messages_short_of(threshold) + 1) * span.denominator / span.numerator
            for span in candidates.spans
            if span.messages_short_of(threshold) < span.last
        ]
        assert found == min(feasible)
        assert len(bounds) <= candidates.count().bit_length() * 5 // 4 + 6
