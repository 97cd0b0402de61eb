# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 4)

    def forward(self, x, wrong):
        h = torch.relu(self.a(x))
        if wrong:
            h = torch.log(h - 5)  # planted
        return self.b(h)

net = Model()
for number in range(1, 7):
    loss = net(torch.randn(16, 8), number == 4).square().mean()
    loss.backward()
    for p in net.parameters():
        p.data.add_(p.grad, alpha=-0.05)
        p.grad = None

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
