"""The evaluation of TensorExpress on one small model: what it writes is what the runs gave."""

import csv
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from evaluation import training
from evaluation.output import Output
from evaluation.settings import Settings
from evaluation.training import AGGREGATED, PLAIN, SCHEMES, WORKERS
from tests.unit.evaluation.runs import SMALL, files, run
from traffic.training import Ordering

ALEXNET = replace(SMALL, repeats=1, models=("alexnet",), sweeps=False)

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Output, Path]:
    folder = tmp_path_factory.mktemp("tensorexpress")
    (evaluated,) = run(folder, "tensorexpress", settings=ALEXNET).outputs
    return evaluated[0], folder


def rows(folder: Path, stem: str) -> Rows:
    with (folder / "out" / f"{stem}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_combination_is_there(done: tuple[Output, Path]) -> None:
    shown = rows(done[1], "tensorexpress")
    keys = {(r["network"], r["measure"], r["statistic"], r["series"], r["jobs"]) for r in shown}
    assert len(keys) == len(shown) == 2 * 3 * 3 * len(SCHEMES) * 2
    assert {"tensorexpress.png", "tensorexpress.svg"} <= {
        path.name for path in (done[1] / "out").iterdir()
    }


def test_means_over_all_are_those_of_the_workers(done: tuple[Output, Path]) -> None:
    of_workers: dict[tuple[str, ...], list[float]] = {}
    for row in rows(done[1], "tensorexpress-workers"):
        key = (row["network"], row["series"], row["jobs"])
        of_workers.setdefault(key, []).append(float(row["mean"]))
    for row in rows(done[1], "tensorexpress"):
        if row["measure"] == "blocking" and row["statistic"] == "mean":
            values = of_workers.pop((row["network"], row["series"], row["jobs"]))
            assert len(values) == WORKERS * int(row["jobs"])
            assert float(row["mean"]) == pytest.approx(mean(values), rel=1e-6)
    assert not of_workers


def test_best_mean_and_p99_are_in_order(done: tuple[Output, Path]) -> None:
    by_statistic: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows(done[1], "tensorexpress"):
        key = (row["network"], row["measure"], row["series"], row["jobs"])
        by_statistic.setdefault(key, {})[row["statistic"]] = float(row["mean"])
    for each in by_statistic.values():
        assert 0 <= each["best"] <= each["mean"] <= each["p99"]
    waiting = by_statistic["parameter server", "waiting", "fifo", "1"]["mean"]
    iteration = by_statistic["parameter server", "iteration", "fifo", "1"]["mean"]
    assert waiting < iteration


def test_claims_follow_from_the_tables(done: tuple[Output, Path]) -> None:
    output, folder = done
    blocking = {
        (row["series"], row["jobs"]): float(row["mean"])
        for row in rows(folder, "tensorexpress")
        if row["network"] == "parameter server"
        and (row["measure"], row["statistic"]) == ("blocking", "mean")
    }
    reduced, _, _, contended, exact = output.claims
    reduction = 100 * (1 - blocking["express", "1"] / blocking["fifo", "1"])
    assert reduced.holds == (reduction >= 46)
    assert f"AlexNet: {reduction:.0f} %" in reduced.evidence
    assert contended.holds == (blocking["express", "2"] < blocking["host", "2"])
    assert exact.holds
    assert exact.evidence == f"{4 * len(SCHEMES)} of {4 * len(SCHEMES)} trainings."


def test_the_same_settings_give_the_same_bytes(done: tuple[Output, Path], tmp_path: Path) -> None:
    few = [c for c in training.cells(ALEXNET) if c.text("scheme") == "express"][:2]
    assert [training.measure(cell) for cell in few] == [training.measure(cell) for cell in few]
    before = files(done[1], ".csv")
    again = run(done[1], "tensorexpress", settings=ALEXNET)
    assert again.computed == 0
    assert files(done[1], ".csv") == before


def test_cells_are_all_models_schemes_and_sweeps() -> None:
    cells = training.cells(Settings(repeats=10))
    main = [cell for cell in cells if cell.text("sweep") == "none"]
    assert len(main) == 3 * 4 * 2 * 2 * len(SCHEMES)
    assert {cell.number("budget") for cell in main} == {PLAIN, AGGREGATED}
    swept = {cell.text("sweep") for cell in cells} - {"none"}
    assert swept == {"rate", "window", "depth", "loss"}
    assert len(set(cells)) == len(cells)


def test_schemes_are_what_they_say() -> None:
    scheduled = {name: scheme.scheduling(54) for name, scheme in SCHEMES.items()}
    assert scheduled["fifo"] is None
    assert scheduled["host"] is None
    ahead = scheduled["ahead"]
    assert ahead is not None
    assert (ahead.window_layers, ahead.lead) == (64, 53)
    eight = SCHEMES["ahead"].scheduling(8)
    assert eight is not None
    assert eight.step == 0
    ordered = {name for name, scheme in SCHEMES.items() if scheme.ordering is Ordering.LAYER}
    assert ordered == {"host", "express-host"}
