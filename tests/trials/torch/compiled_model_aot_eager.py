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

    def forward(self, x):
        h = torch.tanh(self.a(x))
        return torch.log(self.b(h) + 3)  # planted

net = Model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
run = torch.compile(net, backend="aot_eager")

for number in range(1, 7):
    x = torch.randn(16, 8)
    if number == 4:
        with torch.no_grad():
            net.b.bias.sub_(10)
    out = run(x)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
