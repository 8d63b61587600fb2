"""PyTorch: gradients of DistributedDataParallel through a Communicator. Needs the extra `torch`.

    model = DistributedDataParallel(model)
    model.register_comm_hook(comm, allreduce_hook)

Each bucket of gradients is one AllReduce; the next is computed meanwhile. What DDP itself exchanges
(its check of the parameters at the start, buffers) goes over its own process group.
"""

# Annotations are values here: DistributedDataParallel looks at those of a hook.

from concurrent.futures import Future
from typing import Any

import numpy as np
import torch
from torch.distributed import GradBucket

from traffic.collectives.communicator import Communicator

_SUMMED = (torch.float32, torch.float64)


def allreduce_hook(comm: Communicator, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean of a bucket over all ranks, for `register_comm_hook` with a Communicator as state.

    float32 and float64 are summed as they are, narrower types as float32; the error is that of
    `Communicator.allreduce`, over the number of ranks. Raises UnsuitableArrayError where a gradient
    is NaN or infinite; what goes wrong later is raised by the future, and so by `backward`.
    """
    gradient = bucket.buffer()
    wide = gradient if gradient.dtype in _SUMMED else gradient.float()
    later = comm.allreduce_async(wide.detach().cpu().numpy(), op="mean")
    promise: torch.futures.Future[torch.Tensor] = torch.futures.Future()

    def keep(done: Future[np.ndarray[Any, Any]]) -> None:
        error = done.exception()
        if error is not None:
            promise.set_exception(error)
        else:
            promise.set_result(torch.from_numpy(done.result()).to(gradient))

    later.add_done_callback(keep)
    return promise
