# truth: {kind = 'healthy', skips = true}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

scaler = torch.amp.GradScaler("cpu", init_scale=2.0**60)
for number in range(1, 61):
    with torch.autocast("cpu", dtype=torch.float16):
        out = net(torch.randn(16, 8))
    loss = out.float().square().mean() * 1e25
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
