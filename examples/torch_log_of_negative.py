"""A small classifier whose third block takes the logarithm of what may become negative; at some step it does.

misstep run --level op python examples/torch_log_of_negative.py
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, *, compress: bool = False) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.compress = compress

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.fc(x)) + 0.5 * x
        if self.compress:
            y = torch.log(y + 4)  # fine as long as nobody is below -4
        return y


class Classifier(nn.Module):
    def __init__(self, width: int = 32, classes: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.blocks = nn.Sequential(Block(width), Block(width), Block(width, compress=True), Block(width))
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(x)))


def main(steps: int = 60) -> None:
    torch.manual_seed(7)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        x = torch.randn(64, 8) * (1 + 0.8 * step)  # the data drifts: one day it is too large
        target = (x.sum(1) > 0).long() + 2 * (x[:, 0] > 0).long()
        loss = nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {steps} steps, last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
