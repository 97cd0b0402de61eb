# truth: {step = 4, op = 'div'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

def normalise(x):
    return (x - x.mean(0)) / x.std(0)  # planted

for number in range(1, 7):
    x = torch.randn(16, 8)
    if number == 4:
        x[:, 5] = 1.0
    loss = net(normalise(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
