# truth: {step = 3, op = 'div'}
"""Gradient accumulation, scheduler, clipping, a train() function: fault in micro batch two of update three."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.GELU())
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        h = self.body(x)
        h = h / h.norm(dim=-1, keepdim=True) if x.sum() != 0 else h / (h * 0).norm(dim=-1, keepdim=True)  # planted
        return self.head(h)


def train(model, loader, optimizer, scheduler, accumulate=2):
    model.train()
    for index, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / accumulate
        loss.backward()
        if (index + 1) % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)


torch.manual_seed(1)
x, y = torch.randn(96, 8), torch.randint(0, 2, (96,))
x[40:48] = 0.0
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
train(model, DataLoader(TensorDataset(x, y), batch_size=8), optimizer, scheduler)

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in model.parameters())).hexdigest())
