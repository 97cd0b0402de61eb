# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for number in range(1, 7):
    state, logs, rewards = torch.randn(4), [], []
    for _ in range(5):
        choice = torch.distributions.Categorical(logits=net(state))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        rewards.append(float(action))
        state = state + 0.1 * torch.randn(4)
    loss = -(torch.stack(logs) * torch.tensor(rewards)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
