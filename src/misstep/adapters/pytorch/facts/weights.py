"""Weights: who holds them, their gradients before an update, and how far the update moved them."""

from __future__ import annotations

import sys
import weakref
import zlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.nn.parameter import is_lazy

from misstep.adapters.pytorch.facts.values import alike, sample
from misstep.adapters.pytorch.names import source_at, user_frame
from misstep.core.facts import OptimizerFact, Setup, WeightFact, WeightLook

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

_TINY = 1e-12


class Weights:
    """Of one program."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self._adapter = adapter
        self._optimizers: dict[int, tuple[weakref.ref[torch.optim.Optimizer], str, int]] = {}
        """By id: the optimizer, the line that made it, its number."""
        self.stepped: dict[int, int] = {}
        """By number of an optimizer: its updates so far."""
        self._late: dict[int, tuple[weakref.ref[torch.Tensor], str]] = {}
        """Weights made after the first optimizer, with their lines."""
        self._told: tuple[Any, ...] = ()
        self._before: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._gradients: dict[int, float | None] = {}
        self._reached: set[int] | None = None
        self._after: dict[int, tuple[int, torch.Tensor, torch.Tensor]] = {}
        """By id of a weight: the step of the last look, and the samples before and after its update."""

    def install(self) -> list[Callable[[], None]]:
        return [self._patch_optimizers(), register_module_parameter_registration_hook(self._registered).remove]

    def _patch_optimizers(self) -> Callable[[], None]:
        original = torch.optim.Optimizer.__init__
        weights = self

        def __init__(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            weights.met(optimizer, str(source_at(user_frame(sys._getframe(1))) or ""))

        torch.optim.Optimizer.__init__ = __init__  # type: ignore[assignment]

        def undo() -> None:
            if torch.optim.Optimizer.__init__ is __init__:
                torch.optim.Optimizer.__init__ = original

        return undo

    def met(self, optimizer: torch.optim.Optimizer, line: str = "") -> int:
        """The optimizer's number."""
        known = self._optimizers.get(id(optimizer))
        if known is not None and known[0]() is optimizer:
            return known[2]
        number = len(self._optimizers)
        self._optimizers[id(optimizer)] = (weakref.ref(optimizer), line, number)
        return number

    def _registered(self, module: nn.Module, name: str, parameter: Any) -> None:
        if self._optimizers and isinstance(parameter, torch.Tensor) and not self._adapter.inert:
            self._late[id(parameter)] = (weakref.ref(parameter), str(source_at(user_frame(sys._getframe(1))) or ""))

    # ── who holds what ────────────────────────────────────────────────────────────────────────────────────────

    def optimizers(self) -> list[tuple[torch.optim.Optimizer, str, int]]:
        """Those that still live and were used, or all when none was used yet."""
        living = [(ref(), line, number) for ref, line, number in self._optimizers.values()]
        return [(one, line, number) for one, line, number in living if one is not None]

    def setup(self, step: int, world: int) -> Setup | None:
        """Who holds what now; None when nothing has changed since it was told."""
        held: dict[int, list[int]] = {}
        tensors: dict[int, torch.Tensor] = {}
        networked: set[int] = set()
        for network in self._adapter.names.networks():
            for weight in network.parameters():
                if not is_lazy(weight):
                    tensors[id(weight)] = weight
                    networked.add(id(weight))
        made = self.optimizers()
        for optimizer, _, number in made:
            for group in optimizer.param_groups:
                for weight in group["params"]:
                    if not is_lazy(weight):
                        tensors.setdefault(id(weight), weight)
                        held.setdefault(id(weight), []).append(number)
        news = (
            frozenset((key, one.requires_grad) for key, one in tensors.items()),
            frozenset((key, len(numbers)) for key, numbers in held.items()),
            len(made),
            tuple(sorted(number for number, count in self.stepped.items() if count)),
        )
        if news == self._told:
            return None
        self._told = news
        name = self._adapter.names.parameter
        late = {name(one): line for ref, line in self._late.values() if (one := ref()) is not None and line}
        return Setup(
            step=step,
            weights=tuple(
                _weight(name(one), one, held.get(key, []), known=key in networked or not networked)
                for key, one in tensors.items()
            ),
            optimizers=tuple(
                OptimizerFact(
                    number,
                    type(optimizer).__name__,
                    line,
                    tuple(_options(group) for group in optimizer.param_groups),
                    _strange(optimizer, networked),
                    self.stepped.get(number, 0),
                )
                for optimizer, line, number in made
            ),
            replaced={weight: late[weight] for weight in (name(one) for one in tensors.values()) if weight in late},
            world=world,
            sharded=any(type(one).__name__ == "DTensor" or hasattr(one, "_is_flat_param") for one in tensors.values()),
        )

    # ── one step ──────────────────────────────────────────────────────────────────────────────────────────────

    def before(self, reached: Iterable[torch.Tensor] | None) -> None:
        """A backward of the step looked at begins: what no update has touched yet is kept, in samples."""
        found = list(reached or ())
        self._reached = None if reached is None else {id(one) for one in found}
        known = {id(one): one for one in (*self._adapter.all_weights(), *found) if isinstance(one, torch.Tensor)}
        self._before = [(one, sample(one)) for one in known.values() if one.is_floating_point() and not one.is_sparse]

    def gradients_ready(self, optimizer: torch.optim.Optimizer | None) -> None:
        """Before an update: the norms of the gradients there are."""
        known = [one for one, _ in self._before if id(one) not in self._gradients and one.is_leaf]
        if optimizer is not None and self._gradients:
            mine = {id(one) for group in optimizer.param_groups for one in group["params"]}
            known = [one for one, _ in self._before if id(one) in mine or self._gradients.get(id(one)) is None]
        given = [one for one in known if one.grad is not None and not one.grad.is_sparse and one.grad.numel()]
        for one in known:
            if one.grad is not None and one.grad.is_sparse:
                self._gradients[id(one)] = float(one.grad.coalesce().values().float().norm())
            else:
                self._gradients.setdefault(id(one), None)
        if given:
            norms = torch._foreach_norm([one.grad.detach() for one in given if one.grad is not None])
            for one, norm in zip(given, torch.stack([each.float().cpu() for each in norms]).tolist()):
                self._gradients[id(one)] = norm

    def looks(self, step: int) -> tuple[tuple[WeightLook, ...], int, bool]:
        """Of every weight; how many moved between two updates, and whether they went back."""
        name = self._adapter.names.parameter
        looked, edited, back = [], 0, 0
        following: dict[int, tuple[int, torch.Tensor, torch.Tensor]] = {}
        for weight, before in self._before:
            after = sample(weight)
            same = torch.equal(before, after)
            size = float(before.float().norm())
            change = None if same else float((after.float() - before.float()).norm()) / max(size, _TINY)
            last = self._after.get(id(weight))
            if last is not None and last[0] == step - 1 and not torch.equal(last[2], before):
                edited += 1
                back += not torch.equal(last[1], last[2]) and torch.equal(last[1], before)
            following[id(weight)] = (step, before, after)
            looked.append(
                WeightLook(
                    name(weight),
                    norm=size,
                    gradient=self._gradients.get(id(weight)),
                    update=0.0 if same else change,
                    moved=not same,
                    reached=None if self._reached is None else id(weight) in self._reached,
                    alike=alike(weight),
                    digest=f"{zlib.crc32(repr(before[:64].float().tolist()).encode()):08x}",
                )
            )
        self._after = following
        self._before, self._gradients, self._reached = [], {}, None
        return tuple(looked), edited, edited > 0 and back == edited


def _weight(name: str, weight: torch.Tensor, held: list[int], *, known: bool) -> WeightFact:
    values = sample(weight).float() if weight.is_floating_point() and not weight.is_sparse else None
    plenty = values is not None and values.numel() > 1
    return WeightFact(
        name,
        tuple(weight.shape),
        weight.requires_grad,
        tuple(dict.fromkeys(held)),
        len(held),
        known,
        std=float(values.std()) if plenty and values is not None else None,
        constant=bool(plenty and values is not None and (values == values[0]).all()),
    )


def _strange(optimizer: torch.optim.Optimizer, networked: set[int]) -> int:
    return sum(id(one) not in networked for group in optimizer.param_groups for one in group["params"])


def _options(group: dict[str, Any]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for key, value in group.items():
        if key == "params":
            continue
        if key == "betas" and isinstance(value, tuple):
            numbers |= {f"beta{place}": float(one) for place, one in enumerate(value, 1)}
        elif isinstance(value, bool | int | float) or (isinstance(value, torch.Tensor) and value.numel() == 1):
            numbers[key] = float(value)
    return numbers
