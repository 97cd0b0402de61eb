# truth: {kind = 'dies', exception = 'IndexError', line = true}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

class Lies(torch.utils.data.Dataset):
    rows = list(range(10))

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return torch.full((8,), float(self.rows[index]))  # planted

net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x in torch.utils.data.DataLoader(Lies(), batch_size=16, num_workers=1):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
