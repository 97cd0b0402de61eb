# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

import copy

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
teacher = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for number in range(1, 7):
    x = torch.randn(16, 8)
    loss = F.mse_loss(net(x), teacher(x) + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for slow, fast in zip(teacher.parameters(), net.parameters()):
        slow.mul_(0.9).add_(fast.detach(), alpha=0.1)

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
