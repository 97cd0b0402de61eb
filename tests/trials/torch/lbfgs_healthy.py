# truth: {kind = 'healthy', steps = 4}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
x = torch.randn(32, 8)
for number in range(1, 5):
    def closure():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
