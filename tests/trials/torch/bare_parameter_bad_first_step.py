# truth: {step = 1, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 8))

    def forward(self, x):
        return x @ torch.log(self.weight)  # planted

net = Scorer()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for number in range(1, 4):
    loss = net(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
