"""Small real networks, and what forward hooks see of them: inputs, parameters and outputs in execution order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from misstep.store.foreign.source import ArraySource


def captured(model: nn.Module, *inputs: torch.Tensor, backward: bool = False) -> ArraySource:
    """One forward pass as a source; with `backward` also the gradients, from the sum of squares of the output."""
    arrays: dict[str, np.ndarray] = {}
    types: dict[str, str] = {}
    calls: dict[str, int] = {}

    def hook(name: str) -> Callable[..., None]:
        def seen(module: nn.Module, given: tuple[Any, ...], result: Any) -> None:
            calls[name] = calls.get(name, 0) + 1
            node = name if calls[name] == 1 else f"{name}~{calls[name]}"
            types[name] = type(module).__name__
            for slot, tensor in enumerate(_tensors(given)):
                arrays[f"{node}:input.{slot}"] = _array(tensor)
            for slot, tensor in enumerate(_tensors(result)):
                arrays[f"{node}:output.{slot}"] = _array(tensor)

        return seen

    def back_hook(name: str) -> Callable[..., None]:
        def seen(module: nn.Module, handed_on: Any, arriving: Any) -> None:
            for slot, tensor in enumerate(_tensors(arriving)):
                arrays[f"{name}:grad_output.{slot}"] = _array(tensor)
            for slot, tensor in enumerate(_tensors(handed_on)):
                arrays[f"{name}:grad_input.{slot}"] = _array(tensor)

        return seen

    for name, parameter in model.named_parameters():
        arrays[f"{name}:param"] = _array(parameter)
    for name, buffer in model.named_buffers():
        arrays[f"{name}:buffer"] = _array(buffer)
    handles = [module.register_forward_hook(hook(name)) for name, module in model.named_modules() if name]
    if backward:
        handles += [
            module.register_full_backward_hook(back_hook(name)) for name, module in model.named_modules() if name
        ]
    result = model(*inputs)
    arrays["loss:loss"] = _array((result.float() ** 2).mean()) if result.is_floating_point() else _array(result)
    if backward:
        model.zero_grad()
        (result**2).mean().backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                arrays[f"{name}:grad"] = _array(parameter.grad)
    for handle in handles:
        handle.remove()
    return ArraySource(arrays, types=types)


def _tensors(given: Any) -> list[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, tuple | list):
        return [tensor for inner in given for tensor in _tensors(inner)]
    return []


def _array(tensor: torch.Tensor) -> np.ndarray:
    import ml_dtypes

    tensor = tensor.detach().clone()
    if tensor.dtype == torch.bfloat16:
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.numpy()


class Norm(nn.Module):
    """A LayerNorm whose formula can be chosen."""

    def __init__(self, size: int, *, eps: float = 1e-5, by_hand: bool = False) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))
        self.size, self.eps, self.by_hand = size, eps, by_hand

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.by_hand:
            return nn.functional.layer_norm(x, (self.size,), self.weight, self.bias, self.eps)
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


class Attention(nn.Module):
    """Self-attention, fused or step by step."""

    def __init__(
        self, size: int, heads: int, *, by_hand: bool = False, scale: float | None = None, causal: bool = False
    ) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.heads, self.by_hand, self.scale, self.causal = heads, by_hand, scale, causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, size = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(size, dim=-1))
        scale = self.scale or (size // self.heads) ** -0.5
        if self.by_hand:
            mixed = torch.softmax(q @ k.transpose(-1, -2) * scale, dim=-1) @ v
        else:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, scale=scale, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, size))


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.ln1, self.attention = Norm(size), Attention(size, heads)
        self.ln2, self.up, self.act, self.down = (
            Norm(size),
            nn.Linear(size, 4 * size),
            nn.GELU(),
            nn.Linear(4 * size, size),
        )
        self.factor = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.ln1(x))
        return x + self.factor * self.down(self.act(self.up(self.ln2(x))))


class Gpt(nn.Module):
    """Token and position embeddings, blocks, a norm and a head."""

    def __init__(self, *, words: int = 97, size: int = 64, heads: int = 4, depth: int = 4, length: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(words, size)
        self.positions = nn.Parameter(torch.randn(length, size) * 0.1)
        self.blocks = nn.ModuleList(Block(size, heads) for _ in range(depth))
        self.norm, self.head = Norm(size), nn.Linear(size, words)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return torch.relu(x + y)


class Cnn(nn.Module):
    """A small residual network for pictures of 3×16×16."""

    def __init__(self, *, channels: int = 16, depth: int = 3) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.pool = nn.MaxPool2d(2)
        self.layers = nn.ModuleList(Residual(channels) for _ in range(depth))
        self.mean, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(channels, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.bn(self.stem(x))))
        for layer in self.layers:
            x = layer(x)
        return self.fc(self.mean(x).flatten(1))


def gpt(seed: int = 0) -> Gpt:
    torch.manual_seed(seed)
    return Gpt().eval()


def cnn(seed: int = 0) -> Cnn:
    torch.manual_seed(seed)
    return Cnn()


def ids(batch: int = 4, length: int = 32) -> torch.Tensor:
    return torch.randint(0, 97, (batch, length), generator=torch.Generator().manual_seed(1))


def pictures(batch: int = 8) -> torch.Tensor:
    return torch.randn(batch, 3, 16, 16, generator=torch.Generator().manual_seed(2))
