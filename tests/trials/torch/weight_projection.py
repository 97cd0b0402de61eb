# truth: {step = 3, op = 'div', after_update = true}
"""Weights projected onto the unit sphere through .data after every update; once a row has died."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 4, bias=False), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.05)
for step in range(1, 7):
    loss = (net(torch.randn(8, 6)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    w = net[0].weight.data
    if step == 3:
        w[1] = 0
    w /= w.norm(dim=1, keepdim=True)  # planted

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
