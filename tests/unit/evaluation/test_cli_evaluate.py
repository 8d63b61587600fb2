"""`bluetree evaluate` as scripts use it."""

import json
from pathlib import Path

import pytest

from controller.cli import invoke
from tests.unit.evaluation.runs import small_text


def test_prints_what_agrees_and_names_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["evaluate", "fig1", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "agrees   SMC has congestion 5." in printed.out
    assert "fig1.csv" in printed.out
    assert (tmp_path / "out" / "fig1.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = small_text(tmp_path).path
    arguments = ["evaluate", "fig6", "--out", str(tmp_path / "out"), "--repeats", "2"]
    arguments += ["--levels", "5", "--jobs", "1", "--text", str(text), "--json"]
    assert invoke(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cells"] == {"computed": 4, "reused": 0}
    assert (document["repeats"], document["levels"], document["seed"]) == (2, 5, 0)
    (figure,) = document["figures"]
    assert figure["name"] == "fig6"
    assert "Word count of text.txt" in figure["setting"]
    assert {type(claim["agrees"]) for claim in figure["claims"]} == {bool}
    assert all(Path(file).stat().st_size for file in figure["files"])


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["fig7"], 2, "'fig7' is not one of"),
        (["fig2", "--repeats", "0"], 2, "--repeats"),
        (["fig2", "--jobs", "0"], 2, "--jobs"),
        (["fig2", "--engine", "dask"], 2, "--engine dask: give the cluster's address"),
        (["fig2", "--scheduler", "tcp://h:1"], 2, "--scheduler: only --engine dask has one"),
        (
            ["fig2", "--engine", "dask", "--scheduler", "tcp://h:1", "--jobs", "2"],
            2,
            "--jobs: the Dask cluster decides",
        ),
        (["fig2", "--target", "bmv2"], 2, "--target bmv2: only tensorexpress runs there"),
        (
            ["tensorexpress", "--target", "softswitch", "--engine", "dask"],
            2,
            "--target softswitch: it runs on this machine",
        ),
        (["fig6", "--text", "/none/such"], 2, "'/none/such' does not exist"),
    ],
)
def test_refuses_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    line: str,
) -> None:
    assert invoke(["evaluate", *arguments, "--out", str(tmp_path)]) == code
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("bluetree: ")
    assert line in errors[0]


def test_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["evaluate", "fig1"]) == 2
    assert "--out" in capsys.readouterr().err


def test_a_text_without_words_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    arguments = ["evaluate", "fig6", "--out", str(tmp_path / "out"), "--text", str(empty)]
    assert invoke(arguments) == 2
    assert "0 words are too few" in capsys.readouterr().err
