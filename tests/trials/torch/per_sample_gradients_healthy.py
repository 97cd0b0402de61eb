# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

def one_loss(params, x):
    return torch.func.functional_call(net, params, (x.unsqueeze(0),)).square().mean()

for number in range(1, 7):
    x = torch.randn(16, 8)
    each = torch.func.vmap(torch.func.grad(one_loss), in_dims=(None, 0))(dict(net.named_parameters()), x)
    optimizer.zero_grad()
    for name, p in net.named_parameters():
        p.grad = each[name].detach().mean(0)
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
