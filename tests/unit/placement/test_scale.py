"""Deep, wide and large trees: no recursion, no listing of candidates, in the time promised."""

import random
import time
from fractions import Fraction

import pytest

from controller.placement import STRATEGIES, Tree, loads, smc, smc_dp
from controller.placement.search import candidate_spans, least_feasible

FEW_RATES = [Fraction(1), Fraction(3, 2), Fraction(9, 4), Fraction(7, 3)]


def binary(n: int, seed: int, share: float) -> Tree:
    rng = random.Random(seed)
    return Tree(
        [-1] + [(v - 1) // 2 for v in range(1, n)],
        [rng.choice(FEW_RATES) for _ in range(n)],
        [rng.randint(1, 9) if v >= n // 2 else 0 for v in range(n)],
        [rng.random() < share for _ in range(n)],
    )


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "brute-force"])
@pytest.mark.parametrize("shape", ["path", "star"])
def test_a_hundred_thousand_switches_in_a_row_or_around_one(strategy: str, shape: str) -> None:
    n = 100_000
    parent = [-1] + [v - 1 if shape == "path" else 0 for v in range(1, n)]
    load = [0 if v % 1000 else 3 for v in range(n)]
    tree = Tree(parent, [1] * n, load, [v % 3 == 0 for v in range(n)])
    k = 1 if strategy == "smc-dp" else 50
    placement = STRATEGIES[strategy](tree, k)
    assert loads(tree, placement.blue).congestion == placement.congestion


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize(("n", "limit"), [(255, 0.02), (4095, 0.5)])
def test_smc_is_as_fast_as_promised(n: int, limit: float, share: float) -> None:
    tree = binary(n, seed=n, share=share)

    def seconds() -> float:
        start = time.perf_counter()
        smc(tree, 32)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < limit


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
    spans = candidate_spans(tree)
    worst = loads(tree, ()).congestion
    for part in (Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 3), Fraction(99, 100)):
        threshold, bounds = worst * part, []

        def attempt(bound: Fraction) -> Fraction | None:
            bounds.append(bound)  # noqa: B023 - called in this turn of the loop only
            return bound if bound >= threshold else None  # noqa: B023

        found = least_feasible(spans, Fraction(0), worst, attempt)
        below = [
            Fraction(span.messages_short_of(threshold) + 1) * span.denominator / span.numerator
            for span in spans
            if span.messages_short_of(threshold) < span.last
        ]
        assert found == min(below)
        candidates = sum(span.last + 1 for span in spans)
        assert len(bounds) <= candidates.bit_length() + 6
