# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.ModuleDict({"embed": nn.Embedding(50, 8, sparse=True), "body": nn.Linear(8, 16), "head": nn.Linear(16, 2)})
net["body"].requires_grad_(False)
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.05)
for number in range(1, 7):
    out = net["head"](torch.relu(net["body"](net["embed"](torch.randint(0, 50, (16,))))))
    loss = F.cross_entropy(out, torch.randint(0, 2, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
