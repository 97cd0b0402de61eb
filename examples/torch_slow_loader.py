"""A training that waits for its data: every sample takes two milliseconds, and nothing is made ahead."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class RandomCrop:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.002)
        return x[:16]


class Numbers(Dataset):
    crop = RandomCrop()

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.crop(torch.randn(20)), torch.randn(1)


def main() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in DataLoader(Numbers(), batch_size=8):
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
