"""The smallest program for `bluetree launch`: every rank contributes, every rank gets the sum.

$ bluetree launch fat-tree:k=4 -k 4 -- python examples/allreduce.py
"""

import numpy as np

from traffic import Communicator

with Communicator.from_env() as comm:
    values = np.full(10_000, comm.rank, dtype=np.float32)
    total = comm.allreduce(values)
    assert (total == sum(range(comm.size))).all()
    mean = comm.allreduce(values, op="mean")
    comm.barrier()
    if comm.rank == 0:
        print(f"{comm.size} ranks: sum {total[0]:g}, mean {mean[0]:g}")
