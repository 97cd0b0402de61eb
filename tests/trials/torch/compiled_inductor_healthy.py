# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Dropout(0.2), nn.GELU(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
run = torch.compile(net, fullgraph=True)
for number in range(1, 7):
    loss = run(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
