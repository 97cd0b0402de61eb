"""Two ranks of which one does not come to the sixth step: the other waits in its collective until it gives up.

torchrun --standalone --nproc-per-node 2 e2e/ranks.py
"""

from __future__ import annotations

import threading

import torch
import torch.distributed as dist
from torch import nn

STEPS, LAST, SECONDS = 9, 6, 6.0


def average(model: nn.Module, step: int) -> None:
    if dist.get_rank() == 1 and step == LAST:
        threading.Event().wait(SECONDS)
        raise RuntimeError("the shard of rank 1 ended early")
    for weight in model.parameters():
        dist.all_reduce(weight.grad)


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank() + 1)
    for step in range(1, STEPS):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 8)), torch.randint(0, 4, (32,)))
        optimizer.zero_grad()
        loss.backward()
        average(model, step)
        optimizer.step()


main()
