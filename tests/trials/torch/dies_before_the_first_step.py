# truth: {kind = 'dies', exception = 'RuntimeError', line = true}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
net(torch.randn(16, 9)).sum().backward()  # planted
