# truth: {step = 5, op = 'exp'}
"""A VAE whose log variance runs away in one batch."""
import torch
from torch import nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(10, 8)
        self.mu, self.logvar = nn.Linear(8, 3), nn.Linear(8, 3)
        self.dec = nn.Linear(3, 10)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)  # planted
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(self.reparameterize(mu, logvar)), mu, logvar


torch.manual_seed(0)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), 1e-3)
for step in range(8):
    batch = torch.rand(16, 10)
    if step == 4:
        batch = batch * 1e5
    recon, mu, logvar = vae(batch)
    kl = -0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.clamp(max=10).exp())
    loss = F.mse_loss(recon, batch) + kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in vae.parameters())).hexdigest())
