# truth: {kind = 'healthy', steps = 10}
"""A trainer class, an EMA copy, running averages, masked losses, a generator of batches and a learning-rate finder."""
import math
import torch
from torch import nn


class Trainer:
    def __init__(self, model):
        self.model, self.ema = model, [p.detach().clone() for p in model.parameters()]
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.running = torch.tensor(float("inf"))

    def batches(self, n):
        for _ in range(n):
            x = torch.randn(8, 5, 6)
            mask = torch.rand(8, 5) > 0.3
            mask[:, 0] = True
            yield x, mask

    def fit(self):
        for x, mask in self.batches(10):
            scores = self.model(x).squeeze(-1).masked_fill(~mask, float("-inf"))
            weight = scores.softmax(-1)
            loss = -(weight[mask].clamp_min(1e-8).log()).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.running = torch.minimum(self.running, loss.detach())
            with torch.no_grad():
                for slow, p in zip(self.ema, self.model.parameters()):
                    slow.lerp_(p, 0.1)


torch.manual_seed(0)
trainer = Trainer(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)))
trainer.fit()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in trainer.model.parameters())).hexdigest())
