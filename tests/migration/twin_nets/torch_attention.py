import torch
from torch import nn


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        mixed, _ = self.attend(x, x, x)
        return self.out(self.norm(x + mixed).mean(dim=1))


def build():
    torch.manual_seed(6)
    return Pooled()
