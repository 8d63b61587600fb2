"""One rank of the real-time benchmark: prints how long an AllReduce took, as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from traffic import Communicator

_WARM_UP = 1024


def main(arguments: Sequence[str]) -> int:
    """Sum once to warm up, once in step for the clock; check the sum."""
    parser = argparse.ArgumentParser(prog="evaluation.allreduce_rank")
    parser.add_argument("--through", choices=["bluetree", "gloo"], required=True)
    parser.add_argument("--elements", type=int, required=True)
    options = parser.parse_args(arguments)
    timed = _bluetree if options.through == "bluetree" else _gloo
    # One write, as all ranks share this output: print's line end may be a second one.
    sys.stdout.write(json.dumps({"seconds": timed(options.elements)}) + "\n")
    sys.stdout.flush()
    return 0


def _values(rank: int, elements: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.random.default_rng(rank).standard_normal(elements, dtype=np.float32)


def _check(sums: np.ndarray[tuple[int, ...], np.dtype[np.float32]], size: int) -> None:
    exact = sum(_values(rank, len(sums)).astype(np.float64) for rank in range(size))
    if not np.allclose(sums, exact, rtol=0, atol=1e-4):
        raise SystemExit("the sums are not those of NumPy")


def _timed(barrier: Callable[[], object], reduce: Callable[[], object]) -> float:
    barrier()
    began = time.monotonic()
    reduce()
    return time.monotonic() - began


def _bluetree(elements: int) -> float:
    with Communicator.from_env() as comm:
        values = _values(comm.rank, elements)
        comm.allreduce(values[:_WARM_UP])
        found = []
        seconds = _timed(comm.barrier, lambda: found.append(comm.allreduce(values)))
        _check(found[0], comm.size)
        comm.barrier()
    return seconds


def _gloo(elements: int) -> float:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    warm = torch.zeros(_WARM_UP)
    dist.all_reduce(warm)
    values = torch.from_numpy(_values(rank, elements))
    seconds = _timed(dist.barrier, lambda: dist.all_reduce(values))
    _check(values.numpy(), size)
    dist.barrier()
    dist.destroy_process_group()
    return seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
