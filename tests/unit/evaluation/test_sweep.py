"""A sweep: the same files whatever computes it and in whatever order, and resumed when killed."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pytest

from evaluation.errors import EvaluationError, MissingError
from evaluation.experiments import measure, needs_words
from evaluation.settings import Cell, Record, Settings
from evaluation.store import Store, load_words
from evaluation.sweep import DaskEngine, LocalEngine
from tests.unit.evaluation.runs import SMALL, files, run, small_text

FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6")
CELL = Cell("single", (("load", "uniform"), ("levels", 3)), 0)
RECORDS = (Record("smc", 1, Fraction(7, 3)), Record("all-red", 0, Fraction(9)))


@dataclass(frozen=True, slots=True)
class Backwards:
    """An engine that computes the last cell first."""

    def compute(
        self, cells: Sequence[Cell], words: Path | None
    ) -> Iterator[tuple[Cell, tuple[Record, ...]]]:
        for cell in reversed(cells):
            known = load_words(words) if words is not None and needs_words(cell) else None
            yield cell, measure(cell, known)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All figures, computed in this process in order."""
    folder = tmp_path_factory.mktemp("reference")
    run(folder, *FIGURES)
    return folder


def test_writes_every_kind_of_file(reference: Path) -> None:
    for name in FIGURES:
        for suffix in (".csv", "-runs.csv", ".png", ".svg", ".txt"):
            assert (reference / "out" / f"{name}{suffix}").stat().st_size > 100
    assert not [path for path in (reference / "out").rglob(".*") if path.is_file()]


@pytest.mark.parametrize("engine", [LocalEngine(2), Backwards()], ids=["processes", "backwards"])
def test_the_same_bytes_whatever_computes_them(
    tmp_path: Path, reference: Path, engine: LocalEngine | Backwards
) -> None:
    run(tmp_path, *FIGURES, engine=engine)
    for suffix in (".csv", ".txt", ".svg", ".png"):
        assert files(tmp_path, suffix) == files(reference, suffix)


def test_a_dask_cluster_of_two_processes_gives_the_same(tmp_path: Path, reference: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        done = run(tmp_path, *FIGURES, engine=DaskEngine(cluster.scheduler_address))
    assert done.reused == 0
    assert done.computed > 0
    assert files(tmp_path, ".csv") == files(reference, ".csv")


def test_says_where_no_scheduler_answers(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(MissingError, match=r"--scheduler tcp://127\.0\.0\.1:9: no Dask scheduler"):
        run(tmp_path, "fig2", engine=DaskEngine("tcp://127.0.0.1:9", seconds=0.5))


def test_a_second_run_computes_nothing(tmp_path: Path) -> None:
    first = run(tmp_path, "fig2")
    again = run(tmp_path, "fig2", "fig3")
    assert first.reused == again.computed == 0
    assert again.reused == first.computed == 12


def test_more_repeats_add_to_what_is_there(tmp_path: Path) -> None:
    run(tmp_path, "fig2")
    more = run(tmp_path, "fig2", settings=replace(SMALL, repeats=3))
    assert (more.computed, more.reused) == (6, 12)


@pytest.mark.parametrize(
    "changed",
    [replace(SMALL, seed=1), replace(SMALL, budgets=(1, 2, 4, 32)), replace(SMALL, levels=4)],
    ids=["seed", "budgets", "levels"],
)
def test_a_changed_setting_is_computed_again(tmp_path: Path, changed: Settings) -> None:
    run(tmp_path, "fig2")
    assert run(tmp_path, "fig2", settings=changed).reused == 0


def test_another_text_is_computed_again_for_word_count_only(tmp_path: Path) -> None:
    run(tmp_path, "fig6")
    text = small_text(tmp_path).path
    assert text is not None
    text.write_text(text.read_text(encoding="utf-8") + " more", encoding="utf-8")
    again = run(tmp_path, "fig6")
    assert (again.computed, again.reused) == (2, 2)


def test_other_code_is_computed_again(tmp_path: Path) -> None:
    Store(tmp_path, "old").write(CELL, RECORDS)
    assert Store(tmp_path, "old").read(CELL) == RECORDS
    assert Store(tmp_path, "new").read(CELL) is None


@pytest.mark.parametrize(
    "damage", [lambda text: text[: len(text) // 2], lambda text: "[]", lambda text: "{}"]
)
def test_a_damaged_result_is_computed_again(tmp_path: Path, damage: object) -> None:
    store = Store(tmp_path, "code")
    store.write(CELL, RECORDS)
    assert callable(damage)
    store.path(CELL).write_text(damage(store.path(CELL).read_text()))
    assert store.read(CELL) is None


def test_refuses_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(EvaluationError, match=r"--out .*out/cells: "):
        run(tmp_path, "fig1")


def test_goes_on_after_it_was_killed(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "controller.cli", "evaluate", "fig5",
        "--repeats", "2", "--levels", "5", "--jobs", "2", "--json",
    ]  # fmt: skip
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [*command, "--out", str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with process:
        _wait_for_results(killed / "cells", 3, process)
        process.kill()
    kept = len(list((killed / "cells").glob("*.json")))
    resumed, whole = (
        json.loads(subprocess.run(
            [*command, "--out", str(folder)], check=True, capture_output=True
        ).stdout)
        for folder in (killed, tmp_path / "whole")
    )  # fmt: skip
    total = whole["cells"]["computed"]
    assert 3 <= kept < total
    assert resumed["cells"] == {"computed": total - kept, "reused": kept}
    for name in ("fig5.csv", "fig5-runs.csv", "fig5.svg"):
        assert (killed / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def _wait_for_results(cells: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while len(list(cells.glob("*.json"))) < count:
        assert time.monotonic() < deadline, "no results in two minutes"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.02)
