# truth: {step = 4, op = 'pow'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

class Gain(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))

    def forward(self, x, power):
        return torch.pow(x * self.gain, power)  # planted

net = nn.ModuleList([nn.Linear(8, 4), Gain()])
optimizer = torch.optim.RMSprop(net.parameters(), lr=0.001)
for number in range(1, 7):
    out = net[1](net[0](torch.randn(16, 8)), 0.5 if number == 4 else 2.0)
    loss = out.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
