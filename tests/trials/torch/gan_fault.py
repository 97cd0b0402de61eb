# truth: {iteration = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1))
of_net = torch.optim.Adam(net.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for number in range(1, 7):
    real, noise = torch.randn(16, 8), torch.randn(16, 4)
    score = critic(net(noise).detach())
    if number == 4:
        score = torch.log(score - 50)  # planted
    loss_critic = F.softplus(-critic(real)).mean() + F.softplus(score).mean()
    of_critic.zero_grad()
    loss_critic.backward()
    of_critic.step()
    loss_net = F.softplus(-critic(net(noise))).mean()
    of_net.zero_grad()
    loss_net.backward()
    of_net.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
