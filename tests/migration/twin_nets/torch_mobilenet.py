import torch
from torch import nn


class Inverted(nn.Module):
    def __init__(self, width=6, expand=2):
        super().__init__()
        wide = width * expand
        self.body = nn.Sequential(
            nn.Conv2d(width, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(inplace=True),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            nn.Conv2d(wide, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x):
        return x + self.body(x)


def build():
    torch.manual_seed(16)
    return Inverted()
