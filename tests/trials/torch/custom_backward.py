# truth: {step = 4, op = 'div', phase = 'backward'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.by = by
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * 0.0 / ctx.by, None  # planted

for number in range(1, 7):
    out = Scale.apply(net(torch.randn(16, 8)), 0.0 if number == 4 else 1.0)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
