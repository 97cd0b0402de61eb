"""Two trainings that should be equal and are not: in the second the epsilon of one LayerNorm differs.

python e2e/twins.py CHECKPOINT [epsilon]
"""

from __future__ import annotations

import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.norm(self.fc(x)))


class Network(nn.Module):
    def __init__(self, epsilon: float, width: int = 24) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.blocks = nn.Sequential(*(Block(width, epsilon if at == 2 else 1e-5) for at in range(4)))
        self.head = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(x)))


def main() -> None:
    torch.manual_seed(3)
    model = Network(float(sys.argv[2]) if len(sys.argv) > 2 else 1e-5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        x = torch.randn(32, 8)
        loss = nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, sys.argv[1])


main()
