"""The life of a testbed on the fabric, through the command line: processes are real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.cli_shell import SHELL_PYTHON
from controller.live import state as live_state
from controller.live.client import NetworkClient
from controller.service.folder import Folder
from p4src.builds import BUILDS
from tests.testbeds import Bluetree, shell

DEADLINE_S = 60
TREE = {
    "format": "bluetree/tree-1",
    "switches": {
        "r": {"parent": None, "rate": 1, "workers": 1},
        "a": {"parent": "r", "rate": 1, "workers": 2, "capacity": 1},
        "b": {"parent": "r", "rate": "3/2", "workers": 3},
    },
}


@pytest.fixture
def tree(tmp_path: Path) -> str:
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(TREE))
    return str(path)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _processes(folder: Path) -> list[str]:
    """Command lines that name a folder."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(words.replace("\0", " "))
    return found


def _assert_right(stopped: dict[str, Any]) -> None:
    """Every sum of every job right, and every link carried what the placements say."""
    for job in stopped["jobs"]:
        assert job["correct"] is True
        assert job["completed"] > 0
        assert job["links"]
        for link in job["links"]:
            assert link["messages"] == link["expected"], link


@pytest.mark.parametrize("lanes", BUILDS)
def test_the_life_of_a_testbed(bluetree: Bluetree, tree: str, lanes: int) -> None:
    up = bluetree("up", tree, "--target", "fabric", "-k", "1", "--lanes", str(lanes))
    assert (up["target"], up["switches"], up["workers"]) == ("fabric", 3, 6)
    assert up["lanes"] == lanes
    assert up["memory"] > 0

    started = bluetree("start", "--seed", "7")
    assert (started["job"], started["k"], started["first_chunk"]) == (1, 1, 0)
    assert started["first_chunk_after"] > 0
    before = bluetree("status")
    assert {switch["state"] for switch in before["switches"]} == {"up"}
    assert before["jobs"][0]["correct"] is True

    moved = bluetree("reallocate", "--blue", "a,b")
    assert moved["blue"] == ["a", "b"]
    assert moved["first_chunk"] > 0
    assert moved["installed_after"] < moved["first_chunk_after"]
    assert moved["deleted"] > 0

    os.kill(bluetree("status")["controller"]["pid"], signal.SIGKILL)
    _until(lambda: "no controller runs" in bluetree("status", exit_code=4)["stderr"])
    again = bluetree("up")
    assert again["controller"] not in (None, up["controller"])

    after = bluetree("status")
    assert after["jobs"][0]["epoch"] == moved["epoch"]
    assert after["jobs"][0]["completed"] > before["jobs"][0]["completed"]
    last = bluetree("reallocate", "-k", "3")
    assert last["epoch"] > moved["epoch"]
    assert last["first_chunk"] > moved["first_chunk"]

    assert _watched(bluetree.folder) >= 2
    counters = bluetree("counters")
    absorbed = {s["name"]: s["outcomes"].get("ABSORBED", 0) for s in counters["switches"]}
    assert min(absorbed.values()) > 0
    shown = bluetree.text("status")
    assert "3 switches, 3 up" in shown
    assert "right" in shown

    stopped = bluetree("stop")
    assert stopped["jobs"][0]["reallocations"] == 2
    _assert_right(stopped)
    assert bluetree("status")["jobs"] == []
    bluetree("down")
    assert not bluetree.folder.exists()
    assert _processes(bluetree.folder) == []


def _watched(folder: Path) -> int:
    """How often `status --watch` shows the jobs until its reader has seen enough."""
    words = [sys.executable, "-m", "controller.cli", "status", "--watch", "--state", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        seen = 0
        for line in watch.stdout:
            seen += "switches, 3 up" in line
            if seen == 2:
                watch.send_signal(signal.SIGINT)
                break
    assert watch.returncode == 0
    return seen


def test_a_controller_that_is_killed_changes_nothing(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "-k", "2")
    bluetree("reallocate", "-k", "1")
    log = bluetree.folder / "controller.log"
    os.kill(bluetree("status")["controller"]["pid"], signal.SIGKILL)
    log.unlink()
    bluetree("up")
    # It found every switch by its program's cookie, and nothing that differs.
    said = log.read_text()
    assert "serves with election id" in said
    assert "updates to what the database says" not in said
    assert "has been given the P4 program" not in said
    _assert_right(bluetree("stop"))


def test_jobs_share_the_switches_and_capacity_is_kept(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric")
    first = bluetree("start", "--blue", "a")
    second = bluetree("start", "-k", "3", "--op", "allreduce")
    assert (first["job"], second["job"]) == (1, 2)
    assert "a" not in second["blue"]
    assert second["full"] == ["a"]
    refused = bluetree("reallocate", "--job", "2", "--blue", "a", exit_code=2)
    assert "a: its capacity of 1 is used by jobs 1 (1 too few)" in refused["stderr"]
    refused = bluetree("start", "-k", "1", "--window", "4096", exit_code=2)
    assert "every switch: 4096 slots are needed" in refused["stderr"]
    bluetree("start", "--blue", "r", "--workers", "w0,w3", "--chunks", "50")
    _until(lambda: bluetree("status")["jobs"][2]["phase"] == "finished")
    stopped = bluetree("stop")
    assert [job["job"] for job in stopped["jobs"]] == [1, 2, 3]
    assert stopped["jobs"][2]["completed"] == 50
    _assert_right(stopped)


def test_a_job_goes_on_with_another_root(bluetree: Bluetree, tree: str) -> None:
    up = bluetree("up", tree, "--target", "fabric", "--root", "a", "--root", "b")
    assert up["roots"] == ["r", "a", "b"]
    bluetree("start", "-k", "1", "--op", "allreduce")
    turned = bluetree("reallocate", "--root", "a", "--blue", "r")
    assert (turned["was"], turned["job"], turned["root"]) == (1, 2, "a")
    assert turned["first_chunk"] > 0
    assert turned["deleted"] > 0
    status = bluetree("status")
    assert {link["switch"]: link["parent"] for link in status["links"]} == {
        "a": "",
        "r": "a",
        "b": "r",
    }
    # At r its own worker and the three of b are summed; a passes that on, and its own two.
    assert {link["switch"]: link["predicted"] for link in status["links"]} == {
        "a": 3,
        "r": 1,
        "b": 3,
    }
    assert status["predicted_congestion"] == "3"
    assert [job["phase"] for job in status["jobs"]] == ["finished", "running"]
    assert (status["jobs"][0]["goes_on_as"], status["jobs"][1]["root"]) == (2, "a")
    assert "goes on as job 2" in bluetree.text("status")
    _until(lambda: bluetree("status")["links"][0]["measured"] > 2)

    # Beside it a job with the network's own root: their trees share the link of b.
    bluetree("start", "--blue", "b")
    shared = {link["switch"] + link["parent"]: link for link in bluetree("status")["links"]}
    assert {name: link["predicted"] for name, link in shared.items()} == {
        "a": 3,
        "ra": 1,
        "br": 3 + 1,
        "r": 1 + 2 + 1,
        "ar": 2,
    }
    again = bluetree("reallocate", "--job", "2", "--blue", "a,b,r")
    assert (again["job"], again["root"], again["congestion"]) == (2, "a", "1")
    third = bluetree("reallocate", "--job", "2", "--root", "b", "-k", "2")
    assert (third["was"], third["job"], len(third["blue"])) == (2, 4, 2)
    assert bluetree("status")["jobs"][3]["completed"] >= third["first_chunk"]
    stopped = bluetree("stop")
    assert [job["job"] for job in stopped["jobs"]] == [1, 2, 3, 4]
    _assert_right(stopped)
    assert stopped["jobs"][3]["completed"] > stopped["jobs"][1]["completed"]


def test_a_root_that_cannot_be_leaves_the_job_alone(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric", "--root", "b")
    bluetree("start", "-k", "1")
    for words, text in (
        (["--root", "a"], "--root a: no destination is attached to it; there are some at r, b"),
        (["--root", "r"], "--root r: the destination of job 1 is there now"),
        (["--root", "b", "--blue", "x"], "--blue x: no such switch in the overlay"),
    ):
        said = bluetree("reallocate", *words, exit_code=2)["stderr"]
        assert text in said
        assert said.count("\n") == 1
    assert "`bluetree down` first" in bluetree("up", "--root", "a", exit_code=2)["stderr"]
    said = bluetree("up", "--target", "bmv2", exit_code=2)["stderr"]
    assert "--target: the network that is up stays as it is" in said
    with NetworkClient(bluetree.folder) as network:
        network.kill("destination2")
    said = bluetree("reallocate", "--root", "b", exit_code=4)["stderr"]
    assert "job 1: goes on as before: destination2: the host was killed" in said
    status = bluetree("status")
    assert [(job["job"], job["phase"]) for job in status["jobs"]] == [(1, "running")]
    assert [switch["blue_for"] for switch in status["switches"]].count([1]) == 1
    done = status["jobs"][0]["completed"]
    _until(lambda: bluetree("status")["jobs"][0]["completed"] > done)
    _assert_right(bluetree("stop"))


def test_a_standby_takes_over(bluetree: Bluetree, tree: str) -> None:
    up = bluetree("up", tree, "--target", "fabric", "--backup")
    assert len(up["standbys"]) == 1
    bluetree("start", "-k", "1")
    before = bluetree("status")
    assert before["standbys"][0]["election_id"] < before["controller"]["election_id"]
    place = bluetree("shell", "r")
    assert place["address"] == before["switches"][0]["address"]
    assert place["election_id"] < before["standbys"][0]["election_id"]
    os.kill(up["controller"], signal.SIGKILL)
    # The same command line, without a word about it.
    after = bluetree("status")
    assert after["controller"]["pid"] == up["standbys"][0]
    assert after["controller"]["election_id"] > before["controller"]["election_id"]
    assert after["standbys"] == []
    bluetree("reallocate", "--blue", "r")
    _assert_right(bluetree("stop"))


@pytest.mark.skipif(
    not SHELL_PYTHON.exists(),
    reason="p4runtime-shell is absent (`make shell-env`): `bluetree shell` was not tried",
)
def test_a_shell_reads_and_with_write_is_tidied_up_after(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "-k", "1")
    count = 'print("entries:", len(list(TableEntry("upstream").read())))\n'
    said = shell(bluetree.folder, count, "r")
    assert "only have read access" in said
    assert "entries: 4" in said
    insert = (
        'entry = TableEntry("upstream")(action="BluetreeIngress.upstream.to_parent")\n'
        'entry.match["job"] = "9"; entry.match["phase"] = "0"; entry.match["resent"] = "0"\n'
        'entry.action["port"] = "1"; entry.action["mac"] = "1"\n'
        "entry.insert()\n"
    )
    said = shell(bluetree.folder, insert + count, "r", "--write")
    assert "only have read access" not in said
    assert "entries: 5" in said
    log = bluetree.folder / "controller.log"
    _until(lambda: "r: is back" in log.read_text())
    counters = {link["switch"] for link in bluetree("counters")["links"]}
    assert counters == {"r", "a", "b"}
    bluetree("reallocate", "--blue", "b")
    _assert_right(bluetree("stop"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["status"], "no testbed is up in"),
        (["start", "-k", "1"], "bluetree up TOPOLOGY"),
        (["down"], "no testbed is up in"),
        (["up"], "name a topology"),
        (["up", "fat-tree:k=2", "--listen", "here"], "--listen here: write HOST:PORT"),
        (["up", "fat-tree:k=2", "--web", "--web-listen", "127.0.0.1:99999"], "write HOST:PORT"),
        (["up", "fat-tree:k=2", "--web", "--web-listen", "192.0.2.1:8080"], "another address"),
        (["stauts"], "did you mean 'status'?"),
        (["xyzzy"], "`bluetree --help` lists them"),
    ],
)
def test_without_a_testbed_the_remedy_is_named(
    bluetree: Bluetree, words: list[str], text: str
) -> None:
    assert text in bluetree(words[0], *words[1:], exit_code=2)["stderr"]


def test_a_network_that_is_killed_is_named_and_replaced(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric", "--backup")
    bluetree("start", "-k", "1")
    os.kill(int(live_state.owner(bluetree.folder)), signal.SIGKILL)
    _until(lambda: not live_state.is_locked(bluetree.folder))
    assert "was killed, and its jobs with it" in bluetree("status", exit_code=4)["stderr"]
    # There is nothing left to control.
    folder = Folder(bluetree.folder)
    _until(lambda: folder.serving() is None and not folder.standbys())
    bluetree("up", tree, "--target", "fabric")
    assert bluetree("status")["jobs"] == []
    bluetree("start", "-k", "1")
    _assert_right(bluetree("stop"))
    # Nor where there was no job that had to be asked about.
    os.kill(int(live_state.owner(bluetree.folder)), signal.SIGKILL)
    _until(lambda: folder.serving() is None)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_network_on_its_way_is_taken_down(bluetree: Bluetree, number: signal.Signals) -> None:
    words = ["up", "binary-tree:levels=9", "--target", "fabric", "--state", str(bluetree.folder)]
    command = subprocess.Popen(
        [sys.executable, "-m", "controller.cli", *words], stderr=subprocess.DEVNULL
    )
    _until(lambda: live_state.is_locked(bluetree.folder))
    command.send_signal(number)
    command.wait(DEADLINE_S)
    if number == signal.SIGKILL:
        assert bluetree("down")["network"] is True
        assert not bluetree.folder.exists()
    assert not live_state.is_locked(bluetree.folder)


@pytest.mark.parametrize("target", ["softswitch", "bmv2"])
def test_an_ordinary_user_is_told_what_works(
    bluetree: Bluetree, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    said = bluetree("up", "fat-tree:k=2", "--target", target, exit_code=3)["stderr"]
    assert said.count("\n") == 1
    assert "needs root" in said
    assert "--target fabric works" in said


def test_what_cannot_be_is_refused_in_one_line(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric")
    for words, text in (
        (["start"], "-k: say how many switches"),
        (["start", "-k", "1", "--workers", "w99"], "--workers w99: no such worker"),
        (["reallocate", "-k", "1"], "no job runs"),
        (["reallocate", "-k", "1", "--job", "9"], "--job 9: no such job"),
        (["stop", "--job", "9"], "--job 9: no such job"),
        (["start", "--blue", "x"], "--blue x: no such switch"),
        (["restart", "w1"], "w1: it runs, and only what is dead"),
        (["rejoin"], "no job runs"),
        (["rejoin", "--job", "9", "w1"], "--job 9: no such job"),
    ):
        said = bluetree(words[0], *words[1:], exit_code=2)["stderr"]
        assert text in said
        assert said.count("\n") == 1
    assert bluetree("up", tree, exit_code=2)["stderr"].count("a testbed is up in") == 1


def test_a_root_that_is_not_there_is_refused_before_anything_starts(
    bluetree: Bluetree, tree: str
) -> None:
    said = bluetree("up", tree, "--target", "fabric", "--root", "zz", exit_code=2)["stderr"]
    assert "--root zz: no such switch" in said
    assert "it has r, a, b" in said
    assert not bluetree.folder.exists()
