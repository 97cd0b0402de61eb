"""A small classifier with two hyper-parameters on its command line; `misstep tune examples/study.yaml` tunes it."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()

torch.manual_seed(options.seed)
x = torch.randn(256, 2)
y = (x.norm(dim=1, keepdim=True) < 1).float()
net = torch.nn.Sequential(torch.nn.Linear(2, options.width), torch.nn.Tanh(), torch.nn.Linear(options.width, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=options.lr, momentum=0.9)
for _ in range(40):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"accuracy {((net(x) > 0) == (y > 0.5)).float().mean().item():.3f}")
