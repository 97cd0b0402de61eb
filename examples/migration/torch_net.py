"""A small classifier in PyTorch."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.act = nn.LeakyReLU()
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        x = self.pool(self.act(self.norm(self.conv(x))))
        return self.head(x.flatten(1))


def build():
    torch.manual_seed(0)
    net = Net()
    return net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
