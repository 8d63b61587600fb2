"""The desired state: what is written is read back, by this process and by the next."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from controller.service.errors import StoreError
from controller.service.store import Allocation, Job, Phase, Role, Store

FIRST = Allocation(1, "smc", 2, ("a", "b"), 0, Role.NEW)
JOB = Job(
    id=3,
    op="reduce",
    chunks=None,
    seed=2**64 - 1,
    members=(0, 2),
    slot_base=64,
    window=32,
    phase=Phase.STARTING,
    allocations=(FIRST,),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def test_a_job_is_read_back_by_the_next_controller(path: Path) -> None:
    store = Store(path)
    store.add(JOB)
    store.close()
    assert Store(path).jobs() == (JOB,)


def test_a_change_of_the_root_goes_through_its_phases(path: Path) -> None:
    store = Store(path)
    store.add(JOB)
    store.begin(3)
    before = store.job(3)
    after = replace(JOB, id=1, root="b", allocations=(replace(FIRST, epoch=2),))
    store.follow(3, after)
    assert [(job.id, job.phase, job.root, job.successor) for job in Store(path).jobs()] == [
        (1, Phase.STARTING, "b", None),
        (3, Phase.INSTALLING, None, 1),
    ]
    store.withdraw(3)
    assert store.jobs() == (before,)
    store.follow(3, after)
    store.begin_at(1, 70)
    store.hand_over(3, 1)
    assert [(job.id, job.phase, job.begins) for job in Store(path).jobs()] == [
        (1, Phase.RUNNING, 70),
        (3, Phase.DRAINING, 0),
    ]
    assert [job.current.role for job in store.jobs()] == [Role.CURRENT, Role.CURRENT]


def test_a_job_that_drains_keeps_its_successor_where_a_change_is_withdrawn(path: Path) -> None:
    store = Store(path)
    store.add(JOB)
    store.begin(3)
    store.follow(3, replace(JOB, id=1, allocations=(replace(FIRST, epoch=2),)))
    store.begin_at(1, 70)
    store.hand_over(3, 1)
    before = store.jobs()
    assert [(job.id, job.chunks) for job in before] == [(1, JOB.chunks), (3, 70)]
    # Without a worker.
    store.propose(3, replace(FIRST, epoch=4, role=Role.NEW))
    store.withdraw(3)
    assert store.jobs() == before
    # Under a third number, before the successor.
    third = replace(JOB, id=2, chunks=70, successor=1, allocations=(replace(FIRST, epoch=5),))
    store.follow(3, third)
    assert [(job.id, job.successor) for job in store.jobs()] == [(1, None), (2, 1), (3, 2)]
    store.withdraw(3)
    assert store.jobs() == before


def test_a_reallocation_goes_through_its_phases(path: Path) -> None:
    store = Store(path)
    store.add(JOB)
    store.begin(3)
    current = replace(FIRST, role=Role.CURRENT)
    assert store.job(3) == replace(JOB, phase=Phase.RUNNING, allocations=(current,))
    new = Allocation(7, "given", None, ("c",), 0, Role.NEW)
    store.propose(3, new)
    found = Store(path).job(3)
    assert found is not None
    assert (found.phase, found.current, found.installed) == (
        Phase.INSTALLING,
        current,
        (current, new),
    )
    store.turn(3, 1000)
    found = Store(path).job(3)
    assert found is not None
    assert found.phase is Phase.DRAINING
    assert found.installed == (
        replace(FIRST, role=Role.OLD),
        replace(new, role=Role.CURRENT, first_chunk=1000),
    )
    store.settle(3)
    found = Store(path).job(3)
    assert found is not None
    assert found.phase is Phase.RUNNING
    assert found.installed == (found.current,)
    assert [one.role for one in found.allocations] == [Role.PAST, Role.CURRENT]


def test_workers_that_come_back_are_known_until_they_send(path: Path) -> None:
    store = Store(path)
    store.add(JOB)
    store.begin(3)

    def told() -> tuple[tuple[int, ...], dict[int, int]]:
        job = store.job(3)
        assert job is not None
        return job.returning, dict(job.returned)

    for epoch, absent, first in ((2, (0, 2), 10), (3, (2,), 20), (4, (), 30), (5, (0,), 40)):
        store.propose(3, replace(FIRST, epoch=epoch, absent=absent))
        back = {3: (0,), 4: (2,)}.get(epoch, ())
        assert told()[0] == back
        store.turn(3, first)
        assert told()[0] == back
        store.settle(3)
        assert told()[0] == ()
    # The first has gone once more.
    assert told() == ((), {2: 30})
    # One that was about to come back when another one went.
    store.propose(3, replace(FIRST, epoch=6, absent=()))
    store.turn(3, 50)
    store.propose(3, replace(FIRST, epoch=7, absent=(0, 2)))
    store.turn(3, 45)
    assert told() == ((), {})


def test_a_reallocation_that_is_withdrawn_leaves_no_trace(path: Path) -> None:
    store = Store(path)
    store.add(JOB)
    store.begin(3)
    before = store.jobs()
    store.propose(3, Allocation(7, "given", None, (), 0, Role.NEW))
    store.withdraw(3)
    assert store.jobs() == before


def test_a_job_that_is_over_holds_nothing(path: Path) -> None:
    store = Store(path)
    store.add(JOB)
    store.set_phase(3, Phase.FINISHED, '{"completed": 5}')
    found = store.job(3)
    assert found is not None
    assert (found.installed, found.result) == ((), '{"completed": 5}')
    store.remove(3)
    assert store.job(3) is None
    assert store.jobs() == ()


def test_numbers_are_never_given_twice(path: Path) -> None:
    one, other = Store(path), Store(path)
    given = [store.next_number("epoch") for store in (one, other, one, other)]
    assert given == [1, 2, 3, 4]
    assert other.last_number("epoch") == 4
    assert other.last_number("term") == 0


def test_a_failed_transaction_writes_nothing(path: Path) -> None:
    store = Store(path)
    store.set_fact("topology", "a")

    def fail() -> None:
        with store.transaction():
            store.set_fact("topology", "b")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.fact("topology") == "a"


def test_what_was_written_survives_a_kill(path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "from controller.service.store import Store\n"
        "store = Store(Path(sys.argv[1])); store.set_fact('topology', 'kept')\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], env=os.environ, check=False)
    assert done.returncode == -9
    assert Store(path).fact("topology") == "kept"


def test_a_file_that_is_no_database_is_named(path: Path) -> None:
    path.write_bytes(b"not a database, though long enough to look like one" * 50)
    with pytest.raises(StoreError, match=r"state\.db: cannot be used"):
        Store(path)
