"""A compiled network with a branch on a tensor's value, fed with batches of two sizes: `misstep graph last` names both.

misstep run python examples/torch_compiled.py
misstep graph last
"""

from __future__ import annotations

import sys

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(16, 32), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.inner(x))
        if x.mean() > 1e-3:  # breaks the graph: torch.where would not
            x = x / x.mean()
        return self.outer(x)


def main() -> None:
    torch.manual_seed(0)
    model = Gate()
    eager = "--eager" in sys.argv
    compiled = model if eager else torch.compile(model, backend="aot_eager")  # "inductor" takes longer to compile
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(12):
        batch = torch.randn(8 if step % 4 else 5, 16)  # the last batch of an epoch is smaller
        loss = compiled(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
