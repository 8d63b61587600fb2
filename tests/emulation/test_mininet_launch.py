"""`bluetree launch` over Mininet: ranks in namespaces of their own send packets themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.emulation.isolated import run_isolated
from tests.emulation.runs import DEADLINE_S

PROGRAM = """
import numpy as np
from traffic import Communicator, SumOverflowError
with Communicator.from_env(job=1) as comm, Communicator.from_env(job=2) as other:
    ranks = np.arange(comm.size)
    values = np.linspace(-1e-9, 1e9, 1000) * (comm.rank + 1)
    futures = [comm.allreduce_async(values)]
    futures.append(comm.allreduce_async(values.astype(np.float32), "mean"))
    both = other.allreduce(np.full(300, comm.rank, dtype=np.int32))
    assert (both == ranks.sum()).all()
    exact = np.linspace(-1e-9, 1e9, 1000) * (ranks + 1).sum()
    assert np.allclose(futures[0].result(), exact, rtol=1e-14)
    assert np.allclose(futures[1].result(), exact / comm.size, rtol=1e-5)
    reduced = comm.reduce(np.full(50, 2.5), root=1)
    assert (reduced is None) == (comm.rank != 1)
    assert reduced is None or (reduced == 2.5 * comm.size).all()
    assert comm.broadcast(np.array([comm.rank, np.nan]), root=2)[0] == 2
    future = comm.allreduce_async(np.full(40, 2**30, dtype=np.int32))
    assert isinstance(future.exception(), SumOverflowError)
    comm.barrier()
"""
DIES = """
import os, numpy as np
from traffic import Communicator
with Communicator.from_env() as comm:
    comm.barrier()
    if comm.rank == 1:
        os._exit(3)
    comm.allreduce(np.zeros(5))
"""


DIES_IN_THE_MIDDLE = """
import os, signal, zlib
import numpy as np
from traffic import Communicator, MissingRankError
from traffic.collectives import packets

class Dying(packets.Worker):
    answers = 0

    def receive(self, frame, now):
        Dying.answers += 1
        if Dying.answers == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().receive(frame, now)

with Communicator.from_env() as comm:
    values = np.linspace(-1, 1, 4000, dtype=np.float32)
    comm.allreduce(values)
    if comm.rank == 1:
        packets.Worker = Dying
    later = comm.allreduce_async(values * 2**comm.rank, "mean")
    mean = later.result()
    assert np.allclose(mean, values * (1 + 4 + 8) / 3, atol=1e-5)
    assert (later.ranks, comm.ranks) == ((0, 2, 3), (0, 2, 3))
    reduced = comm.reduce(values, root=2)
    assert (reduced is None) == (comm.rank != 2)
    try:
        comm.reduce(values, root=1)
    except MissingRankError as error:
        assert error.ranks == (1,)
    comm.barrier()
    print(f"{zlib.crc32(mean.tobytes())}\\n", end="")
"""


def launch(target: str, program: str, *options: str) -> list[str]:
    words = ["binary-tree:levels=2", "--workers", "2", "-k", "1", "--target", target, *options]
    command = [sys.executable, "-m", "controller.cli", "launch", *words]
    return [*command, "--", sys.executable, "-c", program]


def test_all_calls_between_hosts_and_nothing_left_behind(target: str, tmp_path: Path) -> None:
    arguments = launch(target, PROGRAM, "--jobs", "2", "--json")
    done = run_isolated(arguments, tmp_path, deadline=DEADLINE_S)
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["ranks"], document["calls"], document["target"]) == (4, 7, target)
    assert document["outcomes"]["EMITTED"] == document["chunks"]
    assert done.after == done.before


def test_long_messages_carry_the_same_calls(target: str, tmp_path: Path) -> None:
    arguments = launch(target, PROGRAM, "--jobs", "2", "--lanes", "240", "--json")
    done = run_isolated(arguments, tmp_path, deadline=DEADLINE_S)
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["calls"], document["lanes"]) == (7, 240)
    assert document["outcomes"]["EMITTED"] == document["chunks"]


def test_a_rank_that_dies_is_named_by_the_others(target: str, tmp_path: Path) -> None:
    done = run_isolated(launch(target, DIES), tmp_path, deadline=DEADLINE_S)
    assert done.code == 4
    assert "rank 1 ended with exit code 3" in done.stderr.splitlines()[-1]
    assert "allreduce(float64[5], sum): rank 1 has left" in done.stderr
    assert done.after == done.before


def test_the_others_carry_a_call_out_anew_without_a_rank_that_is_killed_in_it(
    target: str, tmp_path: Path
) -> None:
    arguments = launch(target, DIES_IN_THE_MIDDLE, "--on-rank-loss", "continue", "--json")
    done = run_isolated(arguments, tmp_path, deadline=DEADLINE_S)
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["lost"] == [{"rank": 1, "ending": "was ended by SIGKILL"}]
    # All that are left have the same bits.
    said = [line for line in done.stderr.splitlines() if line.isdigit()]
    assert (len(said), len(set(said))) == (3, 1)
    assert done.after == done.before
