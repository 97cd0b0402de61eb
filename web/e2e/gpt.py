"""A small GPT with causal masks, whose fourth block takes the logarithm of what turns negative at step 5.

python e2e/gpt.py [steps] [seconds between steps] [--lr LR] [--batch N] [--healthy]
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, logarithm: bool) -> None:
        super().__init__()
        self.ln1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.logarithm = logarithm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        return torch.log(x + 12) if self.logarithm else x


class GPT(nn.Module):
    def __init__(self, words: int = 64, width: int = 32, layers: int = 6, *, healthy: bool = False) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(words, width), nn.Embedding(16, width)
        self.blocks = nn.ModuleList(Block(width, 4, logarithm=at == 3 and not healthy) for at in range(layers))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        x = (self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))) * scale
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int, nargs="?", default=12)
    parser.add_argument("rest", type=float, nargs="?", default=0.0)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--healthy", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(3)
    model = GPT(healthy=args.healthy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        tokens = torch.randint(0, 64, (args.batch, 16))
        logits = model(tokens, 40.0 if step == 4 and not args.healthy else 1.0)
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(args.rest)


main()
