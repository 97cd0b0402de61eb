"""Who is called, in which order and from which line: zero_grad, clip, unscale, schedulers; and whether the gradients
of an update still held those of the one before.

Clearing gradients is judged by what became of them, not by how it was written: `optimizer.zero_grad()`,
`model.zero_grad()`, `p.grad = None` and `p.grad.zero_()` are all the same here.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.utils import clip_grad

from misstep.adapters.pytorch.names import source_at, user_frame
from misstep.core.facts import CLIP, SCALER, SCHEDULE, UNSCALE, ZERO

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

MOST_LETTERS = 48
_WATCHED = 4
"""Weights of an optimizer whose gradients are followed from one update to the next."""
_ALWAYS = 8
"""Updates of an optimizer that are judged in any case; later ones only in steps that are looked at."""


class CallSeam:
    """Stands beside the calls of a training loop."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self._adapter = adapter
        self.order: list[str] = []
        self.counts: dict[str, int] = {}
        self.lines: dict[str, str] = {}
        self.leftover = self.leftover_part = self.judged = self.skipped = 0
        self.clip: tuple[float, float] | None = None
        self.looking = False
        self._kept: dict[int, list[tuple[weakref.ref[torch.Tensor], weakref.ref[torch.Tensor], list[bool]]]] = {}
        """By id of an optimizer: weights, their gradients at its last update, and whether they were cleared since."""
        self._judgements: dict[int, int] = {}
        self._depth = 0

    def install(self) -> list[Callable[[], None]]:
        from torch.amp.grad_scaler import GradScaler
        from torch.optim import lr_scheduler

        undo = [
            self._beside(torch.optim.Optimizer, "zero_grad", ZERO),
            self._beside(nn.Module, "zero_grad", ZERO),
            self._beside(GradScaler, "unscale_", UNSCALE),
            self._beside(GradScaler, "update", SCALER),
            self._beside(GradScaler, "step", ""),  # it unscales by itself: not a call of the program
        ]
        schedulers = {
            one
            for one in vars(lr_scheduler).values()
            if isinstance(one, type) and "step" in vars(one) and one.__module__ == lr_scheduler.__name__
        }
        undo += [self._beside(one, "step", SCHEDULE) for one in sorted(schedulers, key=lambda one: one.__name__)]
        for home in (torch.nn.utils, clip_grad):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                undo.append(self._beside(home, name, CLIP))
        return undo

    def _beside(self, home: Any, name: str, letter: str) -> Callable[[], None]:
        original = getattr(home, name)
        seam = self

        def beside(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or seam._adapter.inert or seam._depth:
                return original(*args, **kwargs)
            seam._depth += 1
            try:
                result = original(*args, **kwargs)
            finally:
                seam._depth -= 1
            seam._adapter.guarded("beside a call", seam._called, letter, name, args, kwargs, result, sys._getframe(1))
            return result

        for attribute in ("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__"):
            setattr(beside, attribute, getattr(original, attribute, original if attribute == "__wrapped__" else ""))
        setattr(home, name, beside)

        def undo() -> None:
            if getattr(home, name, None) is beside:
                setattr(home, name, original)

        return undo

    def _called(self, letter: str, name: str, args: Any, kwargs: Any, result: Any, frame: Any) -> None:
        if self._adapter.replaying or not letter:
            return
        self.note(letter, frame)
        if letter == ZERO:
            self.cleared()
        elif name == "clip_grad_norm_" and self.looking:
            most = kwargs.get("max_norm", args[1] if len(args) > 1 else None)
            if most is not None and isinstance(result, torch.Tensor):
                self.clip = (float(result), float(most))

    def note(self, letter: str, frame: Any = None) -> None:
        """One call of this kind; its line is found once."""
        self.counts[letter] = self.counts.get(letter, 0) + 1
        if len(self.order) < MOST_LETTERS:
            self.order.append(letter)
        if frame is not None and letter not in self.lines:
            self.lines[letter] = str(source_at(user_frame(frame)) or "")

    # ── gradients from one update to the next ─────────────────────────────────────────────────────────────────

    def cleared(self) -> None:
        """Something may have cleared gradients: which of those that are followed are gone, or zero?"""
        for followed in self._kept.values():
            for weight, gradient, state in followed:
                if not state[0] and _is_cleared(weight(), gradient()):
                    state[0] = True

    def before_update(self, optimizer: torch.optim.Optimizer, *, judge: bool) -> None:
        followed = self._kept.pop(id(optimizer), None)
        if followed and judge:
            gone = [state[0] for _, _, state in followed]
            self.judged += 1
            self.leftover += not any(gone)
            self.leftover_part += any(gone) and not all(gone)

    def after_update(self, optimizer: torch.optim.Optimizer) -> None:
        count = self._judgements[id(optimizer)] = self._judgements.get(id(optimizer), 0) + 1
        if count > _ALWAYS and not self.looking:
            return
        weights = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
        if not weights or any(one.grad.is_sparse for one in weights[:_WATCHED]):
            return
        chosen = {round(place * (len(weights) - 1) / max(1, _WATCHED - 1)) for place in range(_WATCHED)}
        self._kept[id(optimizer)] = [
            (weakref.ref(weights[place]), weakref.ref(weights[place].grad), [False])
            for place in sorted(chosen)
            if bool(weights[place].grad.any())
        ]


def _is_cleared(weight: torch.Tensor | None, gradient: torch.Tensor | None) -> bool:
    if weight is None or weight.grad is None or gradient is None or weight.grad is not gradient:
        return True
    return not bool(gradient.any())
