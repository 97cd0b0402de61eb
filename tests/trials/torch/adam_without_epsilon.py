# truth: {step = 1, phase = 'optimizer'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
with torch.no_grad():
    net[0].bias[3] = -1e4
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, eps=0.0)
for number in range(1, 5):
    loss = net(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
