"""The command line as users script it: JSON, exit codes, one-line errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import rdpcap

from controller import cli
from controller.placement import STRATEGIES
from traffic.wire import Aggregation

FIG1 = {
    "format": "bluetree/tree-1",
    "switches": {
        "r": {"parent": None, "rate": "1", "workers": 0},
        "a": {"parent": "r", "rate": "1"},
        "b": {"parent": "r", "rate": "1"},
        "c": {"parent": "a", "rate": "1", "workers": 2},
        "d": {"parent": "a", "rate": "1", "workers": 6},
        "e": {"parent": "b", "rate": "1", "workers": 5},
        "f": {"parent": "b", "rate": "1", "workers": 5},
    },
}


@pytest.fixture(autouse=True)
def _fabric_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a machine with bmv2 does the same as one without."""
    monkeypatch.setenv("BLUETREE_TARGET", "fabric")


@pytest.fixture
def fig1(tmp_path: Path) -> str:
    path = tmp_path / "fig1.json"
    path.write_text(json.dumps(FIG1))
    return str(path)


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.invoke([*arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and the only line on stderr; nothing may be on stdout."""
    code = cli.invoke(arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, captured.err
    return code, lines[0]


def test_plan_document_has_the_fields_of_the_contract(
    capsys: pytest.CaptureFixture[str], fig1: str
) -> None:
    document = _json(capsys, "plan", fig1, "-k", "2")
    assert document["strategy"] == "smc"
    assert document["k"] == 2
    assert document["congestion"] == "5"
    assert document["congestion_float"] == 5.0
    assert document["blue"] == sorted(document["blue"])
    assert document["seconds"] > 0
    assert {
        "switch": "f",
        "parent": "b",
        "messages": 5,
        "rate": "1",
        "congestion": "5",
    } in document["links"]
    assert document["links"][0]["parent"] is None


@pytest.mark.parametrize(
    ("strategy", "congestion"), [("smc", "5"), ("top", "8"), ("max", "9"), ("level", "6")]
)
def test_plan_gives_fig1(
    capsys: pytest.CaptureFixture[str], fig1: str, strategy: str, congestion: str
) -> None:
    document = _json(capsys, "plan", fig1, "-k", "2", "--strategy", strategy)
    assert document["congestion"] == congestion


@pytest.mark.parametrize(("k", "congestion"), [(0, "18"), (1, "9"), (2, "5"), (3, "5"), (4, "3")])
def test_plan_gives_fig1_for_every_budget(
    capsys: pytest.CaptureFixture[str], fig1: str, k: int, congestion: str
) -> None:
    assert _json(capsys, "plan", fig1, "-k", str(k))["congestion"] == congestion


def test_fractional_rates_stay_exact(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    switches = {"r": {"parent": None, "rate": "3/7", "workers": 1}}
    path.write_text(json.dumps({"format": "bluetree/tree-1", "switches": switches}))
    document = _json(capsys, "plan", str(path), "-k", "0")
    assert document["congestion"] == "7/3"
    assert document["congestion_float"] == pytest.approx(7 / 3)
    assert document["links"][0]["rate"] == "3/7"


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_run_document_has_the_fields_of_the_contract(
    capsys: pytest.CaptureFixture[str], fig1: str, strategy: str
) -> None:
    document = _json(capsys, "run", fig1, "-k", "2", "--strategy", strategy, "--chunks", "4")
    assert document["target"] == "fabric"
    assert document["switches"] == 7
    assert document["workers"] == 18
    assert document["chunks"] == 4
    assert document["jobs"] == 1
    assert document["correct"] is True
    assert document["congestion"]["predicted"] == document["congestion"]["measured"]
    assert len(document["links"]) == 7
    for link in document["links"]:
        assert link.keys() == {
            "switch", "parent", "predicted", "measured", "retransmitted", "rate",
        }  # fmt: skip
        assert link["predicted"] == link["measured"]
        assert link["retransmitted"] == 0
    assert document["retransmissions"] == 0
    assert document["outcomes"]["FANNED_OUT"] == 7 * 4
    assert document["seconds"] > 0
    assert document["goodput"] > 0


def test_run_takes_blue_switches_by_name(capsys: pytest.CaptureFixture[str], fig1: str) -> None:
    document = _json(capsys, "run", fig1, "--blue", "d, b", "--chunks", "2")
    assert document["blue"] == ["b", "d"]
    assert document["congestion"]["measured"] == "5"


def test_run_under_loss_reports_retransmissions(
    capsys: pytest.CaptureFixture[str], fig1: str
) -> None:
    document = _json(
        capsys, "run", fig1, "-k", "2", "--op", "allreduce", "--loss", "0.1", "--seed", "4"
    )
    assert document["correct"] is True
    assert document["retransmissions"] > 0
    assert any(link["retransmitted"] > 0 for link in document["links"])


def test_digits_document(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "fat-tree:k=4", "-k", "4", "--workload", "digits", "--rounds", "3"]
    document = _json(capsys, *arguments)
    assert document["op"] == "allreduce"
    training = document["training"]
    assert len(training["accuracy"]) == 3
    assert training["identical"] is True
    strategies = {row["strategy"] for row in training["strategies"]}
    assert strategies == {"smc", "top", "max", "level", "all-red", "all-blue"}


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_pictures_are_drawn(
    capsys: pytest.CaptureFixture[str], fig1: str, tmp_path: Path, suffix: str
) -> None:
    for command in (["plan", fig1], ["run", fig1, "--chunks", "2"]):
        path = tmp_path / f"{command[0]}.{suffix}"
        _json(capsys, *command, "-k", "2", "--picture", str(path))
        assert path.stat().st_size > 1000


def test_tables_name_the_most_congested_links(
    capsys: pytest.CaptureFixture[str], fig1: str
) -> None:
    assert cli.invoke(["plan", fig1, "-k", "2"]) == 0
    shown = capsys.readouterr().out
    assert "congestion 5" in shown
    assert "b, d" in shown


def test_doctor_says_which_targets_work(capsys: pytest.CaptureFixture[str]) -> None:
    document = _json(capsys, "doctor")
    targets = {verdict["target"]: verdict["works"] for verdict in document["targets"]}
    assert targets.keys() == {"fabric", "softswitch", "bmv2"}
    assert targets["fabric"] is True
    names = {finding["name"] for finding in document["findings"]}
    assert {"P4 program", "C compiler", "p4runtime-shell", "torch", "tc", "ethtool"} <= names
    assert not any("--target " + one["target"] + ":" in one["why"] for one in document["targets"])


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert cli.invoke([command, "--help"]) == 0
    said = capsys.readouterr().out
    assert {"--json", "--debug"} <= set(said.split())


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["plan", "{fig1}", "-k", "-1"], 2, "k is -1"),
        (["plan", "{fig1}", "-k", "two"], 2, "'two' is not a valid integer"),
        (["plan", "{fig1}"], 2, "-k: say how many"),
        (["plan", "no-such-file.json", "-k", "2"], 2, "no-such-file.json"),
        (["plan", "fat-tree:k=3", "-k", "2"], 2, "odd"),
        (["plan", "fat-tre:k=4", "-k", "2"], 2, 'did you mean "fat-tree"'),
        (["plan", "{fig1}", "-k", "2", "--strategy", "best"], 2, "'best' is not one of"),
        (["plan", "{fig1}", "-k", "2", "--picture", "x.gif"], 2, "x.gif"),
        (["plan", "{fig1}", "-k", "2", "--workers", "many"], 2, "many"),
        (["run", "{fig1}", "-k", "2", "--blue", "z"], 2, "--blue z: no such switch"),
        (["run", "{fig1}", "-k", "1", "--blue", "a,b"], 2, "-k allows 1"),
        (["run", "{fig1}", "-k", "2", "--window", "3"], 2, "power of two"),
        (["run", "{fig1}", "-k", "2", "--jobs", "200"], 2, "a switch has 4096"),
        (["run", "{fig1}", "-k", "2", "--loss", "1.5"], 2, "--loss"),
        (["run", "{fig1}", "-k", "2", "--fail", "b"], 2, "SWITCH@FRACTION"),
        (["run", "{fig1}", "-k", "2", "--fail", "s1-s2@0.5"], 2, "no link of that name"),
        (["run", "{fig1}", "-k", "2", "--root", "z"], 2, "no such switch to be a root"),
        (["run", "{fig1}", "-k", "2", "--fail", "z@0.5"], 2, "no such switch"),
        (["run", "{fig1}", "-k", "2", "--rounds", "3"], 2, "--rounds"),
        (["run", "{fig1}", "-k", "0", "--fail", "d@0.5", "--chunks", "64"], 4, "cuts off"),
        (["run", "random-tree:n=9999", "-k", "2"], 2, "9999 switches"),
        (["run", "{fig1}", "-k", "2", "--workers", "0"], 2, "has no workers"),
        (["frobnicate"], 2, "frobnicate"),
        (["evaluate"], 2, "FIGURE"),
        (["run", "{fig1}", "-k", "2", "--seed", "-1"], 2, "--seed"),
        (["run", "{fig1}", "-k", "2", "--loss", "nan"], 2, "not a probability"),
        (["run", "{fig1}", "-k", "2", "--pcap", "/no/such/x.pcap"], 2, "there is no folder"),
        (["run", "{fig1}", "--blue", "a", "--strategy", "top"], 2, "leave out --strategy"),
        (["run", "random-tree:n=2100", "-k", "4", "--target", "auto"], 2, "2100 switches"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], fig1: str, arguments: list[str], code: int, text: str
) -> None:
    given, line = _refused(capsys, *(argument.format(fig1=fig1) for argument in arguments))
    assert given == code
    assert text in line
    assert line.startswith("bluetree: ")


@pytest.mark.parametrize("target", ["softswitch", "bmv2"])
def test_a_target_without_root_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fig1: str, target: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    code, line = _refused(capsys, "run", fig1, "-k", "2", "--target", target)
    assert code == 3
    assert line == (
        f"bluetree: --target {target}: needs root for network namespaces; "
        "--target fabric works without"
    )


def test_auto_is_the_fabric_without_root(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fig1: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    document = _json(capsys, "run", fig1, "-k", "2", "--target", "auto", "--chunks", "2")
    assert document["target"] == "fabric"


def test_every_problem_of_a_file_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    switches = {
        "r": {"parent": None, "rate": "0"},
        "a": {"parent": "q", "rate": "1", "worker": 3},
        "b": {"parent": "r", "rate": "1", "workers": -2},
    }
    path.write_text(json.dumps({"format": "bluetree/tree-1", "switches": switches}))
    assert cli.invoke(["plan", str(path), "-k", "1"]) == 2
    shown = capsys.readouterr().err
    for part in ("rate", '"q"', 'did you mean "workers"', "-2"):
        assert part in shown
    assert len(shown.strip().splitlines()) == 4


def test_debug_adds_the_traceback(capsys: pytest.CaptureFixture[str], fig1: str) -> None:
    assert cli.invoke(["--debug", "plan", fig1, "-k", "-1"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_debug_works_behind_the_command_too(capsys: pytest.CaptureFixture[str], fig1: str) -> None:
    assert cli.invoke(["plan", fig1, "-k", "-1", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_nothing_but_errors_goes_to_a_stderr_that_is_no_terminal(
    capsys: pytest.CaptureFixture[str], fig1: str
) -> None:
    assert cli.invoke(["run", fig1, "-k", "2", "--chunks", "2"]) == 0
    assert capsys.readouterr().err == ""


def test_names_are_shown_as_they_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    switches = {"[red]r[/]": {"parent": None, "rate": 1, "workers": 2}}
    path.write_text(json.dumps({"format": "bluetree/tree-1", "switches": switches}))
    for command in ("plan", "run"):
        assert cli.invoke([command, str(path), "-k", "1"]) == 0
        assert "[red]r[/]" in capsys.readouterr().out


def test_a_capture_holds_every_frame(
    capsys: pytest.CaptureFixture[str], fig1: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.pcapng"
    _json(capsys, "run", fig1, "-k", "2", "--chunks", "2", "--pcap", str(path))
    frames = rdpcap(str(path))
    upward = [frame for frame in frames if frame.haslayer(Aggregation) and frame.kind == 1]
    # Each of 18 workers sends its 2 chunks over its own link, then the tree's 7 links carry theirs.
    assert len(upward) == 2 * (18 + 4 + 3 + 1 + 2 + 1 + 5 + 5)


def test_training_needs_the_sum_at_every_worker(
    capsys: pytest.CaptureFixture[str], fig1: str
) -> None:
    arguments = ("run", fig1, "-k", "2", "--workload", "digits", "--op", "reduce")
    code, line = _refused(capsys, *arguments)
    assert (code, "leave out --op reduce" in line) == (2, True)


@pytest.mark.parametrize("name", ["w0", "destination"])
def test_a_switch_called_like_a_host_cannot_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "t.json"
    switches = {name: {"parent": None, "rate": 1, "workers": 2}}
    path.write_text(json.dumps({"format": "bluetree/tree-1", "switches": switches}))
    code, line = _refused(capsys, "run", str(path), "-k", "1")
    assert (code, "a host is called so" in line) == (2, True)


def test_what_nobody_foresaw_is_a_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fig1: str
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("controller.render.show_plan", broken)
    code, line = _refused(capsys, "plan", fig1, "-k", "2")
    assert (code, "surprise" in line) == (4, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full: no full disk to print to")
def test_an_output_that_cannot_be_written_is_a_line(fig1: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "controller.cli", "plan", fig1, "-k", "2"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 4
    assert done.stderr == "bluetree: the output cannot be written: No space left on device\n"


def test_a_reader_may_go_before_the_end(fig1: str) -> None:
    # A pipe that nobody reads, whatever the moment.
    unread, written = os.pipe()
    os.close(unread)
    for command in (["plan", fig1, "-k", "2"], ["plan", fig1, "-k", "2", "--json"], ["doctor"]):
        done = subprocess.run(
            [sys.executable, "-m", "controller.cli", *command],
            stdout=written,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
    os.close(written)
