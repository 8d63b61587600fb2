"""Train a small network on digits in several processes, the gradients summed in the switches.

    $ bluetree launch fat-tree:k=4 -k 4 -- python examples/train_digits.py

Needs PyTorch: .venv/bin/pip install -c constraints.txt -e '.[torch]'. `--through gloo` sends the
same gradients by PyTorch's own AllReduce instead; both print the first and last loss, and the
accuracy on held-out images.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys

try:
    import torch
    import torch.distributed as dist
except ImportError:
    if os.environ.get("RANK", "0") != "0":
        sys.exit()  # rank 0 says so for all
    sys.exit("PyTorch is not installed: .venv/bin/pip install -c constraints.txt -e '.[torch]'")
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from traffic import Communicator
from traffic.collectives.pytorch import allreduce_hook

HELD_OUT = 360


def main() -> None:
    """Train as one rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--through", choices=["bluetree", "gloo"], default="bluetree")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print losses as JSON")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels = digits()
    own = slice(HELD_OUT + rank, None, size)
    network = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    model = DistributedDataParallel(network)
    with contextlib.ExitStack() as stack:
        if options.through == "bluetree":
            comm = stack.enter_context(Communicator.from_env())
            model.register_comm_hook(comm, allreduce_hook)
        losses = train(model, images[own], labels[own], options.steps)
        with torch.no_grad():
            hits = network(images[:HELD_OUT]).argmax(1) == labels[:HELD_OUT]
    if rank == 0:
        accuracy = hits.double().mean().item()
        if options.json:
            print(json.dumps({"losses": losses, "accuracy": accuracy}))
        else:
            print(
                f"{size} ranks through {options.through}: loss {losses[0]:.4f} at first, "
                f"{losses[-1]:.4f} after {len(losses)} steps; {accuracy:.1%} of held-out right"
            )
    dist.destroy_process_group()


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """All images [1797, 64], pixels 0 to 1, and their labels, in one order for every rank."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    return torch.tensor(images / 16.0).float()[order], torch.tensor(labels)[order]


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, steps: int) -> list[float]:
    """Full-batch gradient descent; the mean of all ranks' losses before each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        mean = loss.detach().double()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
    return losses


if __name__ == "__main__":
    main()
