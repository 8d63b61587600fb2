"""Workers and rates laid over a network."""

from fractions import Fraction
from pathlib import Path
from statistics import fmean, pvariance

import pytest

from topologies import RATE_LAWS, TopologyError, WorkloadOptions, parse


def leaf_loads(spec: str, options: WorkloadOptions) -> list[int]:
    tree = parse(spec, options).overlay.tree
    assert not any(tree.load[v] for v in range(tree.n) if tree.children[v])
    return [tree.load[v] for v in range(tree.n) if not tree.children[v]]


def test_a_number_is_that_many_workers_at_every_leaf() -> None:
    assert leaf_loads("fat-tree:k=4", WorkloadOptions(workers="7")) == [7] * 8
    assert leaf_loads("random-tree:n=30,seed=3", WorkloadOptions(workers="0")).count(0) > 5


def test_uniform_is_1_to_9_with_mean_5() -> None:
    loads = leaf_loads("binary-tree:levels=14", WorkloadOptions(workers="uniform", seed=1))
    assert set(loads) == set(range(1, 10))
    assert abs(fmean(loads) - 5) < 0.15
    assert abs(pvariance(loads) - Fraction(20, 3)) < 0.4


def test_power_law_is_1_to_63_with_mean_5_and_the_papers_variance() -> None:
    loads = leaf_loads("binary-tree:levels=17", WorkloadOptions(workers="power-law", seed=1))
    assert set(loads) == set(range(1, 64))
    assert abs(fmean(loads) - 5) < 0.15
    assert abs(pvariance(loads) - 97.1) < 3


@pytest.mark.parametrize("law", ["uniform", "power-law"])
def test_draws_repeat_under_a_seed(law: str) -> None:
    first = leaf_loads("binary-tree:levels=6", WorkloadOptions(workers=law, seed=5))
    assert first == leaf_loads("binary-tree:levels=6", WorkloadOptions(workers=law, seed=5))
    assert first != leaf_loads("binary-tree:levels=6", WorkloadOptions(workers=law, seed=6))


@pytest.mark.parametrize(
    ("law", "leaf", "into_root", "to_destination"),
    [
        ("constant", Fraction(1), Fraction(1), Fraction(1)),
        ("linear", Fraction(1), Fraction(7), Fraction(8)),
        ("exponential", Fraction(1), Fraction(3, 2) ** 6, Fraction(3, 2) ** 7),
    ],
)
def test_rate_laws_on_the_papers_tree(
    law: str, leaf: Fraction, into_root: Fraction, to_destination: Fraction
) -> None:
    rate = parse("binary-tree:levels=8", WorkloadOptions(rates=law)).overlay.tree.rate
    assert (rate[-1], rate[1], rate[0]) == (leaf, into_root, to_destination)


def test_workers_of_a_file_land_where_it_says(tmp_path: Path) -> None:
    for name, text in (("w.json", '{"s1": 4, "s5": 9}'), ("w.yaml", "s1: 4\ns5: 9\n")):
        (tmp_path / name).write_text(text)
        options = WorkloadOptions(workers=str(tmp_path / name))
        assert parse("binary-tree:levels=3", options).overlay.tree.load == (0, 4, 0, 0, 0, 9, 0)


def test_every_problem_of_a_workers_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text('{"s1": -4, "s55": 9, "s2": 1.5, "s3": 1, "s3": 2, "s4": true}')
    with pytest.raises(TopologyError) as refusal:
        parse("binary-tree:levels=3", WorkloadOptions(workers=str(path)))
    assert refusal.value.problems == (
        'switch "s1": -4 is not a number of workers: write an integer >= 0',
        'switch "s55": not in the overlay, did you mean "s5"?',
        'switch "s2": 1.5 is not a number of workers: write an integer >= 0',
        'switch "s3": appears more than once',
        'switch "s4": true is not a number of workers: write an integer >= 0',
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (WorkloadOptions(workers="unifrom"), 'did you mean "uniform"'),
        (WorkloadOptions(workers="-3"), '"-3" is not an integer >= 0'),
        (WorkloadOptions(workers="9" * 40), "too large: at most 1000000000000"),
        (WorkloadOptions(rates="linaer"), f'not one of {", ".join(RATE_LAWS)}, did you mean "lin'),
    ],
)
def test_a_bad_option_is_refused_in_one_line(options: WorkloadOptions, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as refusal:
        parse("binary-tree:levels=3", options)
    assert "\n" not in str(refusal.value)
