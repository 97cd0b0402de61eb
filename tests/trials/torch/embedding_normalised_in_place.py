# truth: {step = 4, op = 'div', after_update = true}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for number in range(1, 7):
    loss = net(torch.randint(0, 20, (16,))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        if number == 4:
            net[0].weight[7].zero_()
        net[0].weight.div_(net[0].weight.norm(dim=1, keepdim=True))  # planted

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
