"""What `bluetree run` says of a failure that was asked for, and which it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller import cli
from controller.aftermath_text import notes
from controller.running import Fate
from controller.testbed import FailurePoint
from topologies import WorkloadOptions, parse
from topologies.network import wire

F2 = ("fat-tree:k=2", "-k", "2")
F4 = ("fat-tree:k=4", "-k", "4")
LOSES_W3 = (*F4, "--fail-worker", "w3@0.5", "--on-worker-loss", "continue")


def _run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    """The lines of a run on the fabric; those of its error where it fails."""
    assert cli.invoke(["run", *words, "--target", "fabric"]) == code
    captured = capsys.readouterr()
    return (captured.err if code else captured.out).splitlines()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            (*F4, "--fail", "core3@0.5"),
            "core3 failed and disturbed nobody: it is outside the tree",
        ),
        (
            (*F4, "--fail", "agg0-0-core1@0.5"),
            "agg0-0-core1 failed and disturbed nobody: it is outside the tree",
        ),
        (
            (*F4, "--fail-worker", "w3@1", "--on-worker-loss", "continue"),
            "w3 died and disturbed nobody: all 32 chunks had been sent by then; use a smaller "
            "share than 1",
        ),
        (
            (*LOSES_W3, "--rejoin-worker", "w3@0.7"),
            "it did not come back: all 32 chunks had been sent by then; use more --chunks or a "
            "smaller --window; links are measured over these",
        ),
    ],
)
def test_a_failure_that_came_to_nothing_is_said(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    told = [said for said in _run(capsys, *words) if said.endswith(line)]
    assert len(told) == 1


def test_a_part_of_the_tree_that_fails_late_is_said_to_disturb_nobody() -> None:
    """Over Mininet the news of a share comes when more is complete, and may come after all is."""
    network = wire(parse("fat-tree:k=2", WorkloadOptions()))
    for part in ("agg0-0-core0", "core0-agg0-0", "agg0-0"):
        point = FailurePoint(part, 16)
        assert notes(network, point, Fate.HARMLESS, (), None, (), 32) == (
            f"{part} failed and disturbed nobody: all 32 chunks had been sent by then; use more "
            "--chunks or a smaller --window",
        )


def test_a_part_below_which_is_no_worker_is_said_to_disturb_nobody(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "workers.json").write_text('{"edge0-0": 2}')
    words = (*F4, "--workers", str(tmp_path / "workers.json"), "--fail", "edge3-1@0.5")
    lines = _run(capsys, *words)
    assert "edge3-1 failed and disturbed nobody: no worker is below it" in lines


def test_each_job_says_where_a_worker_left_and_came_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [
        *LOSES_W3,
        "--rejoin-worker",
        "w3@0.7",
        "--jobs",
        "2",
        "--chunks",
        "60",
        "--window",
        "4",
    ]
    lines = _run(capsys, *words)
    assert cli.invoke(["run", *words, "--target", "fabric", "--json"]) == 0
    jobs = json.loads(capsys.readouterr().out)["failure"]["jobs"]
    for job in jobs:
        first = job["sums"][1]["chunks"][0][0]
        assert job["back_at"] > first
        expected = f"job {job['job']}: from chunk {first} on; it came back at chunk "
        assert f"{expected}{job['back_at']}" in lines
    without = sum(job["without"] for job in jobs)
    assert (
        f"w3 died: {without} of 120 chunks are summed without it, and it came back; links are "
        "measured from there on"
    ) in lines


def test_only_chunks_that_are_complete_are_said_to_be_summed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Over links that lose they become complete out of order."""
    words = (*F4, "--fail", "edge0-0@0.25", "--loss", "0.05", "--chunks", "64")
    assert cli.invoke(["run", *words, "--target", "fabric", "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    (job,) = document["failure"]["jobs"]
    assert (document["correct"], job["complete"]) == (True, False)
    (summed,) = job["sums"]
    assert sum(last - first + 1 for first, last in summed["chunks"]) == job["completed"] < 64


def test_the_remedy_for_a_cut_link_exists(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = (*F2, "--fail", "agg0-0-core0@0.5", "--chunks", "100")
    (line,) = _run(capsys, *words, code=4)
    assert "a further link round agg0-0-core0" in line
    assert "restart" not in line
    tree = {"r": None, "a": "r", "b": "a", "c": "a"}
    switches = {name: {"parent": above, "rate": "1"} for name, above in tree.items()}
    path = tmp_path / "tree.json"
    path.write_text(json.dumps({"format": "bluetree/tree-1", "switches": switches}))
    turned = [str(path), "-k", "1", "--workers", "1", "--fail", "a-r@0.5", "--chunks", "100"]
    (line,) = _run(capsys, *turned, code=4)
    assert "the destination has no other way, so attach another with --root b" in line
    told = _run(capsys, *turned, "--root", "b")
    assert any(said.startswith("a-r failed: went on at chunk") for said in told)


GOES = ("--on-worker-loss", "continue")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--fail", "agg0-0@0.5", "--fail", "core0@0.5"), "one thing fails at a time"),
        (("--fail-worker", "w1@0.5", "--fail-worker", "w2@0.5"), "one thing fails at a time"),
        (
            ("--fail-worker", "w1@0", *GOES, "--rejoin-worker", "w1@0", "--rejoin-worker", "w1@1"),
            "one worker comes back, once",
        ),
        (("--fail", "destination@1.5"), "1.5 is not a share of all chunks, which is from 0 to 1"),
        (("--fail", "destination@-0.1"), "-0.1 is not a share"),
        (("--fail", "destination@nan"), "nan is not a share"),
        (("--fail-worker", "w3@1.5"), "1.5 is not a share"),
        (("--fail-worker", "w3@0", *GOES, "--rejoin-worker", "w3@inf"), "inf is not a share"),
        (("--fail", "destination"), "or destination@0.5"),
        (("--fail", "w0@0.5"), "that is a worker; use --fail-worker w0@0.5"),
        (("--fail", "w0-edge0-0@0.5"), "cannot be cut"),
        (("--fail", "core0-destination@0.5"), "kill the host with --fail destination@0.5"),
        (("--fail", "destinatoin@0.5"), 'did you mean "destination"?'),
        (("--fail", "agg0-0-cor0@0.5"), 'did you mean "agg0-0-core0"?'),
        (("--fail-worker", "agg0-0@0.5"), "that is switch agg0-0; use --fail agg0-0@0.5"),
        (("--fail-worker", "w3@0.5", "--rejoin-worker", "w3@0.7"), "add --on-worker-loss continue"),
        (("--fail-worker", "w3@0.5", *GOES, "--rejoin-worker", "w4@0.7"), "it is w3 that dies"),
        (("--fail-worker", "w3@0.5", *GOES, "--rejoin-worker", "w99@0.7"), "no such worker"),
        (("--rejoin-worker", "w3@0.7"), "add --fail-worker w3@FRACTION"),
        (
            ("--workload", "digits", "--fail-worker", "w3@0.5", *GOES),
            "--fail-worker, --on-worker-loss: --workload digits",
        ),
        (("--workload", "digits", "--fail", "core0@0.5"), "--fail: --workload digits"),
        (("--workload", "digits", "--jobs", "2"), "--jobs: --workload digits"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_fail_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str
) -> None:
    (line,) = _run(capsys, *F4, *words, code=2)
    assert text in line
