"""A rank of test_pytorch: trains with each hook in turn, and compares every gradient on the way.

Prints from rank 0 {"gloo": losses, "bluetree": losses, "buckets": compared, "worst": share}, where
`worst` is the largest difference of an element from gloo's, in units of what is documented.
"""

import json
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from examples.train_digits import HELD_OUT, digits, train
from p4src.constants import LANES
from traffic import Communicator
from traffic.collectives.blocks import error_bound
from traffic.collectives.pytorch import allreduce_hook

STEPS = 30
SMALL_BUCKETS_MB = 0.001
"""Makes two buckets, one a layer, whose AllReduces are open at the same time."""


class Comparison:
    """Sums every bucket both ways; what `allreduce_hook` says is used."""

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm
        self.buckets = 0
        self.worst = 0.0

    def hook(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """The hook under test, with a look at gloo's mean."""
        gradient = bucket.buffer()
        exact = gradient.double()
        dist.all_reduce(exact)
        exact /= self.comm.size
        largest = gradient.abs().double()
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)

        def compare(done: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
            got = done.value()
            for start in range(0, len(got), LANES):
                block = slice(start, start + LANES)
                bound = error_bound("float32", self.comm.size, largest[block].max().item())
                rounding = exact[block].abs().max().item() * torch.finfo(torch.float32).eps
                off = (got[block].double() - exact[block]).abs().max().item()
                if off:
                    self.worst = max(self.worst, off / (bound / self.comm.size + rounding))
            self.buckets += 1
            return got

        return allreduce_hook(self.comm, bucket).then(compare)


def compared(state: Comparison, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A hook is a function."""
    return state.hook(bucket)


def losses(comm: Communicator, comparison: Comparison | None) -> list[float]:
    """One training, with the hook or as DDP does by itself."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    model = DistributedDataParallel(network, bucket_cap_mb=SMALL_BUCKETS_MB)
    if comparison is not None:
        model.register_comm_hook(comparison, compared)
    images, labels = digits()
    own = slice(HELD_OUT + comm.rank, None, comm.size)
    return train(model, images[own], labels[own], STEPS)


def main() -> None:
    """Train twice."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    with Communicator.from_env() as comm:
        comparison = Comparison(comm)
        found: dict[str, Any] = {
            "gloo": losses(comm, None),
            "bluetree": losses(comm, comparison),
            "buckets": comparison.buckets,
            "worst": comparison.worst,
        }
        if comm.rank == 0:
            print(json.dumps(found))
        comm.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
