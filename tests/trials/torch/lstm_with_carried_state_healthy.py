# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.LSTM(8, 16)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
state = None
for number in range(1, 7):
    out, state = net(torch.randn(5, 4, 8), state)
    state = tuple(s.detach() for s in state)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
