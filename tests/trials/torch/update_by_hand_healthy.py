# truth: {kind = 'healthy', steps = 6}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

w = torch.zeros(8, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for number in range(1, 7):
    x = torch.randn(32, 8)
    loss = F.mse_loss(x @ w + b, x.sum(1))
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad.zero_()

print("weights", w.detach().numpy().tobytes().hex(), float(b))
