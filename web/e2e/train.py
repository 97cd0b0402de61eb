"""A small training for the browser tests: log of a negative number at step 5, then NaN in everything.

python e2e/train.py [steps] [seconds between steps] [seed] [step whose batch has the wrong width]
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, *, logarithm: bool = False) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.logarithm = logarithm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.fc(x)) + 0.5 * x
        return torch.log(y + 4) if self.logarithm else y


class Network(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.blocks = nn.Sequential(*(Block(width, logarithm=at == 2) for at in range(6)))
        self.head = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(x)))


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rest = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    torch.manual_seed(int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    broken = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(steps):
        width = 9 if step + 1 == broken else 8
        x = torch.randn(48, width) * (40.0 if step == 4 and not broken else 1.0)
        target = (x.sum(1) > 0).long() + 2 * (x[:, 0] > 0).long()
        loss = nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(rest)


main()
