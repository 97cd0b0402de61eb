# truth: {kind = 'skips', attempts = 12}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=1, growth_factor=1e6)
for number in range(1, 13):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (net(torch.randn(16, 8)) * 1e4).square().mean() * 1e30
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
