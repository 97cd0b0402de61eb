# truth: {step = 4, op = 'div', after_update = true}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

import copy

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
teacher = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for number in range(1, 7):
    x = torch.randn(16, 8)
    with torch.no_grad():
        target = teacher(x)
    loss = F.mse_loss(net(x), target + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay = 0.0 if number == 4 else 0.9
    with torch.no_grad():
        for slow, fast in zip(teacher.parameters(), net.parameters()):
            slow.copy_((slow * decay + fast * (1 - decay)) / (1.0 if number != 4 else fast * 0))  # planted

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
