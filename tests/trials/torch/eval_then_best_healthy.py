# truth: {kind = 'healthy', steps = 12}
"""Validation every epoch with metrics that are NaN by construction (a class that never occurs), best checkpoint in memory."""
import copy
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(64, 6), torch.randint(0, 3, (64,))
best, best_state = -1.0, None
for epoch in range(3):
    net.train()
    for i in range(0, 64, 16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[i : i + 16]), y[i : i + 16])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        guess = net(x).argmax(1)
        per_class = torch.stack([(guess[y == c] == c).float().mean() for c in range(4)])
        accuracy = per_class.nanmean().item()
    if accuracy > best:
        best, best_state = accuracy, copy.deepcopy(net.state_dict())
net.load_state_dict(best_state)

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
