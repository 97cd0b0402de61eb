# truth: {step = 4, op = 'log', samples = [5]}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

data = torch.rand(96, 8) + 0.5
data[3 * 16 + 5] = -4.0
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=16)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = net

    def forward(self, x):
        return self.body(torch.log(x))  # planted

model = Model()
for (x,) in loader:
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
