"""`bluetree launch` on the fabric, as users script it: ranks, exit codes, one-line errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.frame.repository import ROOT

TREE = ("binary-tree:levels=2", "--workers", "2", "-k", "1")
RANKS = 4
DEADLINE_S = 120


def launched(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A finished launch of a Python program as every rank."""
    return subprocess.run(
        [*arguments(*options), "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        cwd=ROOT,
    )


def arguments(*options: str) -> list[str]:
    return [sys.executable, "-m", "controller.cli", "launch", *TREE, "--target", "fabric", *options]


SUMS = """
import numpy as np
from traffic import Communicator
with Communicator.from_env() as comm:
    total = comm.allreduce(np.arange(100.0) * comm.rank)
    print(f"rank {comm.rank} of {comm.size} {total[1]}\\n", end="")
"""


def test_every_rank_gets_the_sum_and_the_document_is_alone_on_stdout() -> None:
    done = launched(SUMS, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["ranks"], document["calls"], document["target"]) == (RANKS, 1, "fabric")
    assert document["outcomes"]["EMITTED"] == document["chunks"]
    messages = {link["switch"]: link["messages"] for link in document["links"]}
    assert messages[document["blue"][0]] == document["chunks"]
    for rank in range(RANKS):
        assert f"rank {rank} of {RANKS} 6.0" in done.stderr


def test_the_example_runs() -> None:
    words = [*arguments(), "--", sys.executable, "examples/allreduce.py"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert f"{RANKS} ranks: sum 6, mean 1.5" in done.stdout


TWO_JOBS = """
import numpy as np
from traffic import Communicator
with Communicator.from_env(job=1) as one, Communicator.from_env(job=2) as two:
    later = one.allreduce_async(np.full(1000, 1.0))
    assert (two.allreduce(np.full(1000, 2.0)) == 8).all()
    assert (later.result() == 4).all()
"""


def test_ranks_may_open_a_communicator_for_each_job_over_a_lossy_network() -> None:
    done = launched(TWO_JOBS, "--jobs", "2", "--loss", "0.05", "--seed", "1", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["jobs"], document["calls"]) == (2, 2)
    assert document["retransmissions"] > 0


DIES = """
import os, sys
import numpy as np
from traffic import Communicator
with Communicator.from_env() as comm:
    comm.barrier()
    if comm.rank == 2:
        os._exit(7)
    comm.barrier()
"""


def test_a_rank_that_dies_ends_the_launch_and_is_named() -> None:
    began = time.monotonic()
    done = launched(DIES)
    assert done.returncode == 4
    last = done.stderr.splitlines()[-1]
    assert last == "bluetree: rank 2 ended with exit code 7: see what it said above"
    assert done.stderr.count("rank 2 has left without making it") == RANKS - 1
    assert time.monotonic() - began < 60


GOES_ON = """
import os, signal
import numpy as np
from traffic import Communicator
with Communicator.from_env() as comm:
    comm.barrier()
    if comm.rank in (1, 2):
        os.kill(os.getpid(), signal.SIGKILL)
    mean = comm.allreduce(np.full(100, comm.rank, dtype=np.float32), "mean")
    print(f"rank {comm.rank} {mean[0]} {comm.ranks}\\n", end="")
"""


def test_a_launch_goes_on_without_ranks_that_are_killed() -> None:
    done = launched(GOES_ON, "--on-rank-loss", "continue", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lost"] == [
        {"rank": rank, "ending": "was ended by SIGKILL"} for rank in (1, 2)
    ]
    assert sorted(done.stderr.splitlines()) == ["rank 0 1.5 (0, 3)", "rank 3 1.5 (0, 3)"]


ENDS_WELL = """
import time
import numpy as np
from traffic import Communicator
from traffic.collectives.errors import MissingRankError
with Communicator.from_env() as comm:
    comm.barrier()
    if comm.rank == 2:
        time.sleep(2.5)
    try:
        comm.allreduce(np.ones(100, dtype=np.float32))
    except MissingRankError:
        print("late")
"""


def test_a_rank_that_was_left_out_is_listed_also_where_it_ends_well() -> None:
    done = launched(ENDS_WELL, "--on-rank-loss", "continue", "--timeout", "1", "--json")
    assert (done.returncode, done.stderr) == (0, "late\n")
    assert json.loads(done.stdout)["lost"] == [
        {"rank": 2, "ending": "was left out, and ended with exit code 0"}
    ]


def test_a_launch_that_goes_on_without_ranks_fails_with_the_last() -> None:
    done = launched("raise SystemExit(7)", "--on-rank-loss", "continue")
    assert done.returncode == 4
    assert "every rank ended with exit code 7" in done.stderr


def test_ranks_that_all_end_alike_are_not_told_apart() -> None:
    last = launched("raise SystemExit(7)").stderr.splitlines()[-1]
    assert last == "bluetree: every rank ended with exit code 7: see what it said above"


HANGS = """
import signal
import numpy as np
from traffic import Communicator
with Communicator.from_env() as comm:
    if comm.rank == 1:
        signal.pause()
    comm.barrier()
"""


def test_a_rank_that_never_calls_is_named_within_the_timeout() -> None:
    done = launched(HANGS, "--timeout", "2")
    assert done.returncode == 4
    assert "barrier(): rank 1 has not made it within 2 s" in done.stderr
    assert "ended with exit code 1" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--", "no-such-program"), "no-such-program: there is no such program"),
        ((), "Missing argument 'COMMAND...'"),
        (("--workers", "0", "--", "true"), "has no workers"),
        (("--window", "3", "--", "true"), "window 3: choose a power of two"),
        (("--timeout", "0", "--", "true"), "--timeout"),
    ],
)
def test_what_cannot_be_launched_is_refused_in_one_line(words: tuple[str, ...], text: str) -> None:
    done = subprocess.run(
        arguments(*words), capture_output=True, text=True, timeout=DEADLINE_S, cwd=ROOT
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert text in line


LINGERS = """
import os, signal
from pathlib import Path
Path(os.environ["PIDS"], str(os.getpid())).touch()
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_rank_outlives_the_launch(tmp_path: Path, number: signal.Signals) -> None:
    words = [*arguments(), "--", sys.executable, "-c", LINGERS]
    environment = {**os.environ, "PIDS": str(tmp_path)}
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == RANKS)
        process.send_signal(number)
        process.wait(30)
        pids = [path.name for path in tmp_path.iterdir()]
        wait_until(lambda: not any(is_alive(pid) for pid in pids))
    finally:
        process.kill()


def is_alive(pid: str) -> bool:
    """Whether there is such a process, other than one that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.05)
