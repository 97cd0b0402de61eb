"""Ten programs that are not deterministic, each for one reason, and programs that are: a base and what is changed."""

from __future__ import annotations

BASE = """\
import os, random, time
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

def main():
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    x = torch.from_numpy(np.random.randn(32, 8).astype(np.float32))
    y = torch.tensor([random.randrange(3) for _ in range(32)])
    net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 3))
    data = TensorDataset(x, y)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    # before the loop
    for a, b in loader:
        optimizer.zero_grad()
        out = net(a)
        loss = nn.functional.cross_entropy(out, b)
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""

NOISY = """\
class Noisy(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, at):
        return torch.from_numpy(np.random.default_rng().standard_normal(8).astype(np.float32)), at % 3

def main"""

WOBBLE = """\
@torch.library.custom_op("lab::wobble", mutates_args=())
def wobble(x: torch.Tensor) -> torch.Tensor:
    return x + os.urandom(1)[0] / 1000

wobble.register_autograd(lambda ctx, grad: grad)

def main"""

HASHED = """\
    bias = net[0].bias.data
    for word in {"a", "b", "c", "d", "e"}:
        bias[0] = bias[0] * 2 + ord(word)
"""
SUMMED = "out = net(a) + 1e-6 * torch.randn(500_000, generator=torch.Generator().manual_seed(3)).sum()"

PLANTED: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "torch seed": ("seed", (("    torch.manual_seed(1)\n", ""),)),
    "numpy seed": ("seed", (("    np.random.seed(1)\n", ""),)),
    "seed from a clock": ("clock", (("torch.manual_seed(1)", "torch.manual_seed(time.time_ns() % 2**31)"),)),
    "shuffle": ("shuffle", (("shuffle=True)", "shuffle=True, generator=(g := torch.Generator(), g.seed())[0])"),)),
    "workers": (
        "workers",
        (
            ("def main", NOISY),
            ("TensorDataset(x, y)", "Noisy()"),
            ("shuffle=True)", "num_workers=1)"),
        ),
    ),
    "dropout": (
        "dropout",
        (("    # before the loop\n", "    order = list(loader)\n    torch.seed()\n    loader = order\n"),),
    ),
    "hash order": ("hash", (("    # before the loop\n", HASHED),)),
    "outside value": ("outside", (("out = net(a)", "out = net(a) * (1 + (time.time_ns() % 1000) * 1e-3)"),)),
    "operator": ("operator", (("def main", WOBBLE), ("out = net(a)", "out = wobble(net(a))"))),
    "threads": ("threads", (("out = net(a)", SUMMED),)),
}
"""Name → (the source to name, what is replaced in the base)."""


def program(name: str) -> str:
    text = BASE
    for old, new in PLANTED[name][1]:
        assert old in text, (name, old)
        text = text.replace(old, new)
    return text
