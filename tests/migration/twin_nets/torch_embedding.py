import torch
from torch import nn


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.hidden = nn.Linear(8, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, tokens):
        return self.out(torch.relu(self.hidden(self.words(tokens).mean(1))))


def build():
    torch.manual_seed(11)
    net = Bag()
    return net, nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=0.01)
