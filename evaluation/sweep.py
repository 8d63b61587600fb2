"""Many cells, computed on all cores or on a Dask cluster; every result is kept as it comes."""

import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any, Protocol

from evaluation.corpus import Text, Words
from evaluation.errors import MissingError
from evaluation.experiments import code_digest, measure, needs_words
from evaluation.settings import Cell, Record
from evaluation.store import Store, load_words

__all__ = ["DaskEngine", "Engine", "LocalEngine", "Results", "Sweep", "run_sweep"]

Results = Mapping[Cell, tuple[Record, ...]]
_Done = tuple[Cell, tuple[Record, ...]]


class Engine(Protocol):
    """Where cells are computed."""

    def compute(self, cells: Sequence[Cell], words: Path | None) -> Iterator[_Done]:
        """Every cell with its records, in the order in which they are ready.

        `words` is the file with the words of the text, or None where no cell needs it.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Processes on this machine.

    Attributes:
        jobs: how many; 1 computes in this process.
    """

    jobs: int

    def compute(self, cells: Sequence[Cell], words: Path | None) -> Iterator[_Done]:
        """See Engine. Raises MissingError where a process dies."""
        if self.jobs == 1 or len(cells) == 1:
            for cell in cells:
                yield cell, _measure_here(cell, words)
            return
        # Spawned, since a fork would copy the threads' locks of the progress bar.
        pool = ProcessPoolExecutor(
            min(self.jobs, len(cells)), get_context("spawn"), initializer=_follow_parent
        )
        try:
            futures = {pool.submit(_measure_here, cell, words): cell for cell in cells}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise MissingError(
                "a process of the evaluation died, perhaps for want of memory: "
                "run it again with fewer --jobs, it goes on where it stopped"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """The workers of a Dask cluster, which have this version of Bluetree installed.

    Attributes:
        scheduler: the address of its scheduler, such as tcp://host:8786.
        seconds: how long to wait for it.
    """

    scheduler: str
    seconds: float = 10.0

    def compute(self, cells: Sequence[Cell], words: Path | None) -> Iterator[_Done]:
        """See Engine. Raises MissingError without Dask, scheduler, workers or equal code."""
        try:
            # By name, since Dask is optional and has no types.
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise MissingError(
                "--engine dask: the package distributed is not installed; "
                "install bluetree with the extra dask"
            ) from None
        try:
            client = distributed.Client(self.scheduler, timeout=self.seconds, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MissingError(
                f"--scheduler {self.scheduler}: no Dask scheduler answers there: {error}"
            ) from None
        with client:
            _check_code(client.run(code_digest), self.scheduler)
            shared = None if words is None else client.scatter(_in_memory(words), broadcast=True)
            futures = {
                client.submit(
                    measure, cell, shared if needs_words(cell) else None, pure=False
                ): cell
                for cell in cells
            }
            try:
                for future in distributed.as_completed(futures, loop=client.loop):
                    yield futures[future], future.result()
            except (OSError, distributed.KilledWorker) as error:
                raise MissingError(
                    f"--scheduler {self.scheduler}: the cluster was lost ({error}): "
                    "run it again, it goes on where it stopped"
                ) from None


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep gave.

    Attributes:
        results: the records of every cell, in the order of the cells.
        computed: how many cells were computed now.
        reused: how many were on disk.
    """

    results: Results
    computed: int
    reused: int


def run_sweep(
    cells: Sequence[Cell],
    store: Store,
    text: Text,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Sweep:
    """The records of all cells: those on disk, and the others computed and kept.

    Args:
        cells: what is needed.
        store: where results are kept.
        text: of the word count; read only if a cell that must be computed needs it.
        engine: what computes.
        progress: told (cells done, cells in all), first with those on disk.

    Raises:
        EvaluationError, MissingError: see the store and the engines.
    """
    found: dict[Cell, tuple[Record, ...]] = {}
    for cell in cells:
        records = store.read(cell)
        if records is not None:
            found[cell] = records
    reused = len(found)
    progress(reused, len(cells))
    missing = [cell for cell in cells if cell not in found]
    if missing:
        words = store.words(text) if any(map(needs_words, missing)) else None
        for cell, records in engine.compute(missing, words):
            store.write(cell, records)
            found[cell] = records
            progress(len(found), len(cells))
    return Sweep({cell: found[cell] for cell in cells}, len(cells) - reused, reused)


def _check_code(digests: Mapping[str, str], scheduler: str) -> None:
    if not digests:
        raise MissingError(f"--scheduler {scheduler}: the cluster has no workers, start some")
    here = code_digest()
    for worker, digest in digests.items():
        if digest != here:
            raise MissingError(
                f"--scheduler {scheduler}: worker {worker} has another version of bluetree, "
                "install this one there"
            )


def _in_memory(path: Path) -> Words:
    words = load_words(path)
    return Words(words.numbers.copy(), words.distinct)


_mapped = lru_cache(maxsize=1)(load_words)


def _measure_here(cell: Cell, words: Path | None) -> tuple[Record, ...]:
    return measure(cell, _mapped(words) if words is not None and needs_words(cell) else None)


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, which ends the pool; and end when the parent has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
