import torch
from torch import nn


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = double(1, 4)
        self.down2 = double(4, 8)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.fuse = double(8, 4)
        self.mask = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        skip = self.down1(x)
        deep = self.down2(self.pool(skip))
        return self.mask(self.fuse(torch.cat([skip, self.up(deep)], dim=1)))


def build():
    torch.manual_seed(14)
    return UNet()
