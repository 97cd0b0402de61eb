# truth: {step = 3, op = 'sqrt'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.LazyLinear(16), nn.Tanh(), nn.LazyLinear(4))
net(torch.randn(2, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for number in range(1, 5):
    out = net(torch.randn(16, 8))
    if number == 3:
        out = torch.sqrt(out - 50)  # planted
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
