import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.up1 = nn.ConvTranspose2d(4, 8, 4, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.up2 = nn.ConvTranspose2d(8, 3, 2, stride=2)

    def forward(self, z):
        return torch.tanh(self.up2(torch.relu(self.norm(self.up1(z)))))


def build():
    torch.manual_seed(13)
    return Generator()
