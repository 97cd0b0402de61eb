"""What PyTorch computes for a sample: the result, the same in float64, and gradients."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from misstep.migration.apimap.functions import torch_surface
from misstep.migration.apimap.functions.torch_samples import Sample, tensors_in
from misstep.migration.apimap.functions.torch_values import copied, plain


@dataclass(slots=True)
class Expected:
    """PyTorch's answer."""

    result: Any
    exact: Any = None
    in_place: bool = False
    gradients: list[Any] = field(default_factory=list)
    """To every float tensor among the arguments, in order; empty where nothing flows back."""
    weights: list[Any] = field(default_factory=list)
    """What the float results were multiplied by before they were summed."""


def expected_of(name: str, sample: Sample, *, gradients: bool) -> Expected | None:
    """None when PyTorch itself refuses the sample."""
    in_place = name.endswith("_") and not name.endswith("__")
    try:
        result = _called(name, copied(sample.args), copied(sample.keywords))
    except Exception:
        return None
    found = Expected(plain(result), in_place=in_place)
    try:
        found.exact = plain(_called(name, copied(sample.args, wide=True), copied(sample.keywords, wide=True)))
    except Exception:
        found.exact = None
    if gradients and not in_place:
        _differentiate(name, sample, found)
    return found


def _called(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    if name.startswith("torch.Tensor."):
        word = name.rpartition(".")[2]
        static = inspect.getattr_static(torch.Tensor, word)
        if not callable(static):
            return getattr(args[0], word)
    return torch_surface.resolve(name)(*args, **keywords)


def _differentiate(name: str, sample: Sample, found: Expected) -> None:
    args, keywords = copied(sample.args), copied(sample.keywords)
    leaves = [one for one in tensors_in((args, keywords)) if one.dtype == torch.float32]
    for one in leaves:
        one.requires_grad_(True)
    try:
        outputs = [one for one in tensors_in(_listed(_called(name, args, keywords))) if one.is_floating_point()]
        outputs = [one for one in outputs if one.requires_grad]
        if not outputs or not leaves or any(not bool(torch.isfinite(one).all()) for one in outputs):
            return
        draw = np.random.default_rng(5)
        weights = [draw.standard_normal(tuple(one.shape)).astype(np.float32) for one in outputs]
        total = sum((one.float() * torch.from_numpy(np.asarray(weight))).sum() for one, weight in zip(outputs, weights))
        grads = torch.autograd.grad(total, leaves, allow_unused=True)  # type: ignore[arg-type]
    except Exception:
        return
    if any(one is None or not bool(torch.isfinite(one).all()) for one in grads):
        return
    found.gradients = [plain(one) for one in grads]
    found.weights = weights


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
