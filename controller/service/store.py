"""The desired state, in SQLite: what must survive the controller.

Every change that a reallocation makes is written here before it is made anywhere else, so that a
controller that starts finds what the one before was about to do, and finishes it or takes it back.
Write-ahead logging lets a controller on standby, and people, read along.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.service.errors import StoreError
from controller.service.jobs import Allocation, Job, OnLoss, Phase, Role

__all__ = ["Allocation", "Job", "OnLoss", "Phase", "Role", "Store"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    chunks INTEGER,
    seed TEXT NOT NULL,
    members TEXT,
    slot_base INTEGER NOT NULL,
    window INTEGER NOT NULL,
    phase TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT '{}',
    root TEXT,
    successor INTEGER,
    on_loss TEXT NOT NULL DEFAULT 'fail',
    avoids TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE TABLE IF NOT EXISTS allocations (
    epoch INTEGER PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
    strategy TEXT NOT NULL,
    budget INTEGER,
    blue TEXT NOT NULL,
    first_chunk INTEGER NOT NULL,
    role TEXT NOT NULL,
    baseline TEXT NOT NULL DEFAULT '{}',
    absent TEXT NOT NULL DEFAULT '[]',
    kept INTEGER NOT NULL DEFAULT 0
) STRICT;
"""
_BUSY_S = 5.0


class Store:
    """The database of one testbed. Used by one thread."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it; raises StoreError where that fails."""
        try:
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute("PRAGMA foreign_keys=ON")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise StoreError(
                f"{path}: cannot be used as the controller's database ({error}); "
                "`bluetree down` and `bluetree up` make a new one"
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside together, or none."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def next_number(self, name: str) -> int:
        """Count on: 1, 2, ...; no number is given twice, whoever asks."""
        row = self._database.execute(
            "INSERT INTO numbers VALUES (?, 1) "
            "ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
            (name,),
        ).fetchone()
        return int(row[0])

    def reach_number(self, name: str, least: int) -> None:
        """Let the next number be above one that was used elsewhere."""
        self._database.execute(
            "INSERT INTO numbers VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = MAX(value, excluded.value)",
            (name, least),
        )

    def last_number(self, name: str) -> int:
        """The number given last; 0 before the first."""
        row = self._database.execute("SELECT value FROM numbers WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def fact(self, name: str) -> str | None:
        """A named text, or None."""
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_fact(self, name: str, value: str) -> None:
        """Name a text, in place of what had the name."""
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def jobs(self) -> tuple[Job, ...]:
        """All jobs by number, those that are over included."""
        return self._jobs(None)

    def job(self, number: int) -> Job | None:
        """One job, or None."""
        return next(iter(self._jobs(number)), None)

    def _jobs(self, number: int | None) -> tuple[Job, ...]:
        """One job, or all: each takes as long as it has allocations."""
        allocations: dict[int, list[Allocation]] = {}
        for job, epoch, strategy, k, blue, first, role, base, gone, kept in self._database.execute(
            "SELECT job, epoch, strategy, budget, blue, first_chunk, role, baseline, absent, kept "
            "FROM allocations WHERE ?1 IS NULL OR job = ?1 ORDER BY epoch",
            (number,),
        ):
            allocations.setdefault(job, []).append(
                Allocation(
                    epoch=epoch,
                    strategy=strategy,
                    budget=k,
                    blue=tuple(json.loads(blue)),
                    first_chunk=first,
                    role=Role(role),
                    baseline=tuple(json.loads(base).items()),
                    absent=tuple(json.loads(gone)),
                    kept=kept,
                )
            )
        rows = self._database.execute(
            "SELECT id, op, chunks, seed, members, slot_base, window, phase, result, root, "
            "successor, on_loss, avoids FROM jobs WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
            (number,),
        )
        return tuple(
            Job(
                id=one,
                op=op,
                chunks=chunks,
                seed=int(seed),
                members=None if members is None else tuple(json.loads(members)),
                slot_base=base,
                window=size,
                phase=Phase(phase),
                allocations=tuple(allocations.get(one, ())),
                result=result,
                root=root,
                successor=heir,
                on_loss=loss,
                avoids=tuple(json.loads(round_)),
            )
            for (
                one,
                op,
                chunks,
                seed,
                members,
                base,
                size,
                phase,
                result,
                root,
                heir,
                loss,
                round_,
            ) in rows
        )

    def add(self, job: Job) -> None:
        """A new job with its allocations."""
        with self.transaction():
            self._add(job)

    def remove(self, number: int) -> None:
        """Forget a job and its allocations."""
        self._database.execute("DELETE FROM jobs WHERE id = ?", (number,))

    def set_phase(self, number: int, phase: Phase, result: str | None = None) -> None:
        """Note where a job is in its life."""
        self._database.execute("UPDATE jobs SET phase = ? WHERE id = ?", (phase, number))
        if result is not None:
            self._database.execute("UPDATE jobs SET result = ? WHERE id = ?", (result, number))

    def propose(self, number: int, allocation: Allocation) -> None:
        """A running job shall be reallocated: installing."""
        with self.transaction():
            self._allocate(number, allocation)
            self.set_phase(number, Phase.INSTALLING)

    def withdraw(self, number: int) -> None:
        """The new allocation, or the successor, could not be installed: all is as before.

        A successor that runs already stays.
        """
        with self.transaction():
            successor = self._database.execute(
                "SELECT id, successor FROM jobs WHERE phase = ? "
                "AND id = (SELECT successor FROM jobs WHERE id = ?)",
                (Phase.STARTING, number),
            ).fetchone()
            if successor is not None:
                new, after = successor
                self._database.execute("DELETE FROM jobs WHERE id = ?", (new,))
                self._database.execute(
                    "UPDATE jobs SET successor = ? WHERE id = ?", (after, number)
                )
            self._database.execute(
                "DELETE FROM allocations WHERE job = ? AND role = ?", (number, Role.NEW)
            )
            drains = self._database.execute(
                "SELECT 1 FROM allocations WHERE job = ?1 AND role = ?2 "
                "UNION SELECT 1 FROM jobs WHERE id = ?1 AND successor IS NOT NULL",
                (number, Role.OLD),
            ).fetchone()
            self.set_phase(number, Phase.DRAINING if drains else Phase.RUNNING)

    def turn(self, number: int, first_chunk: int, kept: int = 0) -> None:
        """The workers have moved to the new allocation, from a chunk on but for some: draining."""
        with self.transaction():
            for before, after in ((Role.CURRENT, Role.OLD), (Role.NEW, Role.CURRENT)):
                self._database.execute(
                    "UPDATE allocations SET role = ? WHERE job = ? AND role = ?",
                    (after, number, before),
                )
            self._database.execute(
                "UPDATE allocations SET first_chunk = ?, kept = ? WHERE job = ? AND role = ?",
                (first_chunk, kept, number, Role.CURRENT),
            )
            self.set_phase(number, Phase.DRAINING)

    def settle(self, number: int) -> None:
        """Nothing of the old allocation is left: running."""
        with self.transaction():
            self._database.execute(
                "UPDATE allocations SET role = ? WHERE job = ? AND role = ?",
                (Role.PAST, number, Role.OLD),
            )
            self.set_phase(number, Phase.RUNNING)

    def begin(self, number: int) -> None:
        """A job that was starting runs."""
        with self.transaction():
            self._begin(number)

    def follow(self, number: int, successor: Job) -> None:
        """A running job shall go on as another, which is new and starts: installing."""
        with self.transaction():
            self._add(successor)
            self._database.execute(
                "UPDATE jobs SET successor = ? WHERE id = ?", (successor.id, number)
            )
            self.set_phase(number, Phase.INSTALLING)

    def begin_at(self, number: int, first_chunk: int) -> None:
        """The first chunk of a job that starts."""
        self._database.execute(
            "UPDATE allocations SET first_chunk = ? WHERE job = ?", (first_chunk, number)
        )

    def hand_over(self, number: int, successor: int) -> None:
        """The successor sends all further chunks, and runs: draining, with its end known."""
        with self.transaction():
            self._begin(successor)
            self._database.execute(
                "UPDATE jobs SET chunks = (SELECT MIN(first_chunk) FROM allocations WHERE job = ?) "
                "WHERE id = ?",
                (successor, number),
            )
            self.set_phase(number, Phase.DRAINING)

    def _begin(self, number: int) -> None:
        self._database.execute(
            "UPDATE allocations SET role = ? WHERE job = ? AND role = ?",
            (Role.CURRENT, number, Role.NEW),
        )
        self.set_phase(number, Phase.RUNNING)

    def _add(self, job: Job) -> None:
        members = None if job.members is None else json.dumps(job.members)
        self._database.execute(
            "INSERT INTO jobs (id, op, chunks, seed, members, slot_base, window, phase, root, "
            "successor, on_loss, avoids) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                job.id,
                job.op,
                job.chunks,
                str(job.seed),
                members,
                job.slot_base,
                job.window,
                job.phase,
                job.root,
                job.successor,
                job.on_loss,
                json.dumps(job.avoids),
            ),
        )
        for allocation in job.allocations:
            self._allocate(job.id, allocation)

    def _allocate(self, number: int, one: Allocation) -> None:
        self._database.execute(
            "INSERT INTO allocations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                one.epoch,
                number,
                one.strategy,
                one.budget,
                json.dumps(one.blue),
                one.first_chunk,
                one.role,
                json.dumps(dict(one.baseline)),
                json.dumps(one.absent),
                one.kept,
            ),
        )
