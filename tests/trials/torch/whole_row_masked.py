# truth: {step = 4, op = 'softmax'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for number in range(1, 7):
    scores = net(torch.randn(4, 8))
    mask = torch.zeros(4, 8, dtype=torch.bool)
    mask[:, 5:] = True
    if number == 4:
        mask[2] = True
    weights = torch.softmax(scores.masked_fill(mask, float("-inf")), -1)  # planted
    loss = (weights * torch.arange(8.0)).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
