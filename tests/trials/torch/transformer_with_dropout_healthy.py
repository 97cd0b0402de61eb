# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
net = nn.Sequential(nn.Linear(8, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for number in range(1, 7):
    loss = net(torch.randn(4, 6, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
