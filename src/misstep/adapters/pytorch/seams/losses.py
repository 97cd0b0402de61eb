"""The losses of the step under way: each as a number for the journal, and as a row where somebody looks at it.

A loss is read when its backward begins. One that lies elsewhere than on the CPU is not waited for there: it becomes a
row, fetched with all others, and a number when the step ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from misstep.adapters.pytorch.tensors import nonfinite

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter


class Losses:
    """In the order of their backwards."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self._adapter = adapter
        self._tensors: list[torch.Tensor] = []
        self._read: dict[int, float] = {}
        """By place: the numbers known already."""

    def __len__(self) -> int:
        return len(self._tensors)

    def take(self, loss: torch.Tensor) -> None:
        """A backward begins from this one. Under the guard, a finite loss that nobody asked about makes no row."""
        adapter = self._adapter
        plain = loss.detach()
        value = math.nan
        if type(plain) is torch.Tensor and plain.is_cpu and plain.numel() == 1:
            with adapter.quietly():
                value = self._read[len(self._tensors)] = float(plain.item())
        self._tensors.append(plain)
        if adapter.level == "off" or (
            adapter.level == "guard" and not adapter.listener.shows_loss and math.isfinite(value)
        ):
            return
        adapter.loss_row(loss, len(self._tensors))

    def add(self, loss: torch.Tensor) -> int:
        """One that no backward was given, and whose row is the caller's to make; how many there are now."""
        self._tensors.append(loss)
        return len(self._tensors)

    def bad(self) -> bool:
        """Whether one is not finite."""
        return bool(nonfinite(self._tensors)) if self._tensors else False

    def numbers(self) -> tuple[float, ...]:
        """All of them; this waits for those that lie elsewhere."""
        read = self._read
        return tuple([read[place] if place in read else number(one) for place, one in enumerate(self._tensors)])

    def clear(self) -> None:
        self._tensors.clear()
        self._read.clear()


def number(value: Any) -> Any:
    """A loss or rate as a float; a loss that is no scalar counts as its mean."""
    if type(value) is float or value is None:
        return value
    if isinstance(value, torch.Tensor):
        if value.numel() == 1:
            return float(value.item())
        with torch.no_grad():
            return float(value.float().mean().item())
    return float(value)
