# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 16)), nn.SiLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for number in range(1, 7):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.randn(16, 8)).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
