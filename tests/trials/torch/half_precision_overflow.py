# truth: {step = 4, op = 'mul', levels = ['op']}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).half()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for number in range(1, 7):
    x = torch.randn(16, 8).half()
    out = net(x)
    if number == 4:
        out = (out + 1) * 65504.0 * 4  # planted
    loss = out.float().clamp(max=1e5).square().mean() * 1e-6
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
