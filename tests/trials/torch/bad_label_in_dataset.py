# truth: {step = 2, op = 'log'}
"""The target is transformed in the dataset, and one raw value is negative."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Houses(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(0)
        self.x, self.price = torch.randn(40, 4, generator=g), torch.rand(40, generator=g) + 0.5
        self.price[13] = -2.0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], torch.log(self.price[i])  # planted


torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for x, y in DataLoader(Houses(), batch_size=8):
    loss = (net(x).squeeze(1) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
