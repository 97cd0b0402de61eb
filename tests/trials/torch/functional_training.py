# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
params = {name: p.detach().clone() for name, p in net.named_parameters()}

def objective(params, x, wrong):
    out = torch.func.functional_call(net, params, (x,))
    if wrong:
        out = torch.log(out - 50)  # planted
    return out.square().mean()

for number in range(1, 7):
    grads = torch.func.grad(objective)(params, torch.randn(16, 8), number == 4)
    params = {name: p - 0.05 * grads[name] for name, p in params.items()}

print("weights", *(float(p.sum()) for p in params.values()))
