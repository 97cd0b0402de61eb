# truth: {kind = 'evaluation', op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

for number in range(1, 7):
    loss = net(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number == 4:
        net.eval()
        with torch.no_grad():
            held_out = torch.log(net(torch.randn(16, 8)) - 50).mean()  # planted
        print("validation", held_out.item())
        net.train()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
