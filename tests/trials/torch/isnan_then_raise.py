# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

for number in range(1, 7):
    out = net(torch.randn(16, 8))
    if number == 4:
        out = torch.log(out - 50)  # planted
    loss = out.square().mean()
    if torch.isnan(loss):
        raise ValueError('loss is NaN')
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
