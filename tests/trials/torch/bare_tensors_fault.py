# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

w = torch.ones(8, requires_grad=True)
for number in range(1, 7):
    x = torch.randn(32, 8)
    out = x @ w
    if number == 4:
        out = torch.log(out - 50)  # planted
    loss = out.square().mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad.zero_()

print("weights", w.detach().numpy().tobytes().hex())
