# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Linear(16, 4)

    def forward(self, h):
        return torch.log(self.b(h) + 3)  # planted

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.inner = torch.compile(Inner(), backend="aot_eager")

    def forward(self, x):
        return self.inner(torch.tanh(self.a(x)))

net = Model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for number in range(1, 7):
    x = torch.randn(16, 8)
    if number == 4:
        with torch.no_grad():
            net.inner.b.bias.sub_(10)
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
