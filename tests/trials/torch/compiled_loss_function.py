# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

@torch.compile(backend="aot_eager")
def criterion(out, target):
    p = torch.sigmoid(out)
    return -(target * torch.log(p - 0.9 * (target.sum() > 1e6))).mean()  # planted

for number in range(1, 7):
    target = torch.rand(16, 4)
    if number == 4:
        target = target + 1e6
    loss = criterion(net(torch.randn(16, 8)), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
