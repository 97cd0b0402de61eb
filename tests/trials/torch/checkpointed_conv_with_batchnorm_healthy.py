# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

from torch.utils.checkpoint import checkpoint

body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
net = nn.Sequential(body, nn.Flatten(), nn.Linear(4 * 36, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for number in range(1, 7):
    h = checkpoint(body, torch.randn(8, 1, 8, 8), use_reentrant=False)
    loss = F.cross_entropy(net[2](net[1](h)), torch.randint(0, 3, (8,)))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
