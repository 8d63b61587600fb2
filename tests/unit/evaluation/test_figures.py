"""What the texts claim is what the data say: recomputed here from the CSV files alone."""

import csv
import re
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from statistics import mean, stdev

import pytest

from controller.placement import smc
from evaluation.output import Claim, Output, claims_text, times
from evaluation.settings import LOADS, RATES, paper_tree, seed_of
from tests.unit.evaluation.runs import SMALL, run

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Output, Path]]:
    folder = tmp_path_factory.mktemp("figures")
    done = run(folder, "fig1", "fig2", "fig3", "fig4", "fig5", "fig6")
    return {output.name: (output, folder / "out") for output, _ in done.outputs}


def _rows(outputs: dict[str, tuple[Output, Path]], name: str, stem: str) -> Rows:
    with (outputs[name][1] / f"{stem}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _claim(outputs: dict[str, tuple[Output, Path]], name: str, words: str) -> Claim:
    found = [claim for claim in outputs[name][0].claims if words in claim.text]
    assert len(found) == 1, words
    return found[0]


@pytest.mark.parametrize(
    "stem", ["fig2", "fig3", "fig4", "fig4-variants", "fig4-offline", "fig5", "fig6"]
)
def test_means_and_deviations_are_those_of_the_runs(
    outputs: dict[str, tuple[Output, Path]], stem: str
) -> None:
    name = stem.partition("-")[0]
    runs: dict[tuple[str, ...], list[float]] = defaultdict(list)
    rows = _rows(outputs, name, f"{stem}-runs")
    keys = list(rows[0])[: list(rows[0]).index("repeat")]
    for row in rows:
        runs[tuple(row[key] for key in keys)].append(float(Fraction(row["exact"])))
    shown = _rows(outputs, name, stem)
    assert len(shown) == len(runs)
    for row in shown:
        values = runs[tuple(row[key] for key in keys)]
        assert len(values) == int(row["repeats"]) == SMALL.repeats
        assert float(row["mean"]) == pytest.approx(mean(values), rel=1e-6)
        assert float(row["deviation"]) == pytest.approx(stdev(values), rel=1e-6, abs=1e-9)


def test_fig1_agrees_with_the_paper_in_everything(
    outputs: dict[str, tuple[Output, Path]],
) -> None:
    assert all(claim.holds for claim in outputs["fig1"][0].claims)
    largest: dict[str, int] = {}
    for row in _rows(outputs, "fig1", "fig1-runs"):
        largest[row["series"]] = max(largest.get(row["series"], 0), int(row["exact"]))
    assert largest == {"top": 8, "max": 9, "level": 6, "smc": 5}


def test_fig2_is_smc_on_the_loads_that_its_seeds_give(
    outputs: dict[str, tuple[Output, Path]],
) -> None:
    rows = [r for r in _rows(outputs, "fig2", "fig2-runs") if r["series"] == "smc"]
    assert len(rows) == len(LOADS) * len(RATES) * len(SMALL.budgets) * SMALL.repeats
    for row in rows:
        seed = seed_of(SMALL.seed, row["load"], int(row["repeat"]))
        tree = paper_tree(SMALL.levels, row["load"], row["rates"], seed)
        assert smc(tree, int(row["k"])).congestion == Fraction(row["exact"])


def test_fig2_counts_the_settings_with_a_factor_of_ten(
    outputs: dict[str, tuple[Output, Path]],
) -> None:
    at: dict[tuple[str, str, str], dict[str, Fraction]] = defaultdict(dict)
    for row in _rows(outputs, "fig2", "fig2-runs"):
        if row["series"] == "all-red" or row["k"] == "32":
            at[row["load"], row["rates"], row["repeat"]][row["series"]] = Fraction(row["exact"])
    factors = defaultdict(list)
    for (load, rates, _), value in at.items():
        factors[load, rates].append(value["all-red"] / value["smc"])
    enough = sum(mean(values) >= 10 for values in factors.values())
    claim = _claim(outputs, "fig2", "reduce congestion x10 in all six")
    assert claim.holds == (enough == 6)
    assert f"At least x10 in {enough} of 6." in claim.evidence


def test_fig3_finds_the_worst_ratio_and_the_second_best(
    outputs: dict[str, tuple[Output, Path]],
) -> None:
    ratios = {
        (r["series"], r["load"], r["rates"], r["k"]): float(r["mean"])
        for r in _rows(outputs, "fig3", "fig3")
        if r["series"] in ("top", "max", "level")
    }
    worst = max(ratios.values())
    claim = _claim(outputs, "fig3", "as much as x13")
    assert f"The largest mean ratio is {times(worst)} " in claim.evidence
    assert claim.holds == (11.7 <= worst <= 14.3)
    places = {key[2:] for key in ratios if key[1] == "uniform"}
    seconds = sum(
        ratios["level", "uniform", *place]
        == min(ratios[name, "uniform", *place] for name in ("top", "max", "level"))
        for place in places
    )
    claim = _claim(outputs, "fig3", "Under uniform loads Level is the second best")
    assert claim.holds == (seconds == len(places))
    assert f"at {seconds} of {len(places)} points" in claim.evidence


def test_fig4_never_beats_the_joint_optimum(outputs: dict[str, tuple[Output, Path]]) -> None:
    rows = _rows(outputs, "fig4", "fig4-offline-runs")
    assert {row["series"] for row in rows} >= {"smc", "smc-needed", "smc-spread", "all-red"}
    assert min(Fraction(row["exact"]) for row in rows) >= 1
    single = [row for row in rows if row["workloads"] == "1" and row["series"] != "all-red"]
    assert {Fraction(row["exact"]) for row in single} == {Fraction(1)}


def test_fig4_says_where_smc_is_not_the_best(outputs: dict[str, tuple[Output, Path]]) -> None:
    means = {
        (r["series"], r["rates"], r["workloads"]): float(r["mean"])
        for r in _rows(outputs, "fig4", "fig4")
    }
    lost = [key for key, value in means.items() if value < means["smc", *key[1:]]]
    assert _claim(outputs, "fig4", "SMC has the least congestion").holds == (not lost)


def test_fig5_names_the_capacity_that_is_enough(
    outputs: dict[str, tuple[Output, Path]],
) -> None:
    means = {
        (r["rates"], int(r["capacity"])): float(r["mean"])
        for r in _rows(outputs, "fig5", "fig5")
        if r["series"] == "smc"
    }
    largest = max(SMALL.capacities)
    claim = _claim(outputs, "fig5", "with a significantly smaller capacity")
    for rates in RATES:
        enough = min(c for c in SMALL.capacities if means[rates, c] <= 1.01 * means[rates, largest])
        assert f"{rates} {enough}" in claim.evidence


def test_fig6_orders_its_placements(outputs: dict[str, tuple[Output, Path]]) -> None:
    runs = {
        (r["application"], r["series"], r["k"], r["repeat"]): Fraction(r["exact"])
        for r in _rows(outputs, "fig6", "fig6-runs")
    }
    for (application, series, k, repeat), value in runs.items():
        if series in ("smc", "smc-fewest"):
            assert value >= runs[application, "smc-sized", k, repeat]
        if k == "0":
            assert value == 1
    messages = {
        (r["application"], r["series"], r["k"]): float(r["mean"])
        for r in _rows(outputs, "fig6", "fig6-messages")
    }
    words, server = (messages[name, "smc", "0"] for name in ("word count", "parameter server"))
    claim = _claim(outputs, "fig6", "Without aggregation")
    assert claim.holds == (server >= 2 * words)
    # Dropout of a half: each of about 80 workers sends half of the features.
    workers = sum(paper_tree(5, "uniform", "constant", seed_of(0, "uniform", 0)).load)
    assert runs["parameter server", "unit", "32", "0"] < Fraction(1, 10)
    assert server == pytest.approx(workers / 2, rel=0.2)


def test_fig6_says_how_large_the_text_is(outputs: dict[str, tuple[Output, Path]]) -> None:
    text = (outputs["fig6"][1].parent / "text.txt").read_text(encoding="utf-8").split()
    (found,) = [line for line in outputs["fig6"][0].findings if line.startswith("The text has")]
    assert f"{len(text):,} words, {len(set(text)):,} of them distinct" in found


def test_every_text_gives_all_claims_and_only_them(
    outputs: dict[str, tuple[Output, Path]],
) -> None:
    for name, (output, folder) in outputs.items():
        text = (folder / f"{name}.txt").read_text(encoding="utf-8")
        assert text == claims_text(output)
        verdicts = re.findall(r"^  (agrees|DIFFERS|found) ", text, flags=re.MULTILINE)
        expected = ["agrees" if claim.holds else "DIFFERS" for claim in output.claims]
        assert verdicts == [*expected, *("found" for _ in output.findings)]
        assert max(map(len, text.splitlines())) <= 100
