# truth: {step = 4, op = 'div'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / 8**0.5
        scores = scores.masked_fill(mask, float("-inf"))
        return self.out(torch.softmax(scores, -1) @ v)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 8)
        self.attention = Attention()
        self.head = nn.Linear(8, 1)

    def forward(self, x, wrong=False):
        h = self.embed(x)
        if wrong:
            h = h / (h - h).std(-1, keepdim=True)  # planted
        mask = torch.triu(torch.ones(h.shape[1], h.shape[1], dtype=torch.bool), 1)
        return self.head(h + self.attention(h, mask))

net = Model()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

for number in range(1, 7):
    loss = net(torch.randn(4, 6, 4), wrong=number == 4).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
