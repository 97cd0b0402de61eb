"""Calls to try a PyTorch function on: the inputs PyTorch's own tests use for its operators, and recipes of ours for
what they leave out. Small, seeded, the same on every machine."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from misstep.errors import need
from misstep.migration.apimap.functions.torch_recipes import RECIPES

MOST_FLOATS, MOST_INTS = 14, 4
MOST_ELEMENTS = 4096
SEED = 20

RANDOM = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "bernoulli",
        "multinomial",
        "normal",
        "poisson",
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_alpha_dropout",
        "native_dropout",
        "uniform_",
        "normal_",
        "bernoulli_",
        "exponential_",
        "geometric_",
        "cauchy_",
        "log_normal_",
        "random_",
        "gumbel_softmax",
        "rrelu",
        "empty",
        "empty_like",
        "new_empty",
        "empty_strided",
        "empty_permuted",
        "new_empty_strided",
        "exponential",
        "geometric",
        "cauchy",
        "log_normal",
        "uniform",
        "fractional_max_pool2d",
        "fractional_max_pool3d",
        "pca_lowrank",
        "svd_lowrank",
        "binomial",
        "resize_",
        "resize_as_",
    ]
)
"""What they return is drawn, or whatever was in memory: shapes and types can be compared, numbers cannot."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One call: positional arguments (the receiver of a method first) and keywords."""

    args: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)

    @property
    def edge(self) -> bool:
        """With a tensor that has no elements or no axes: frameworks differ there without meaning to."""
        return any(one.ndim == 0 or one.numel() == 0 for one in tensors_in((self.args, self.keywords)))


def samples(name: str) -> list[Sample]:
    """Calls of a function or method of PyTorch; none when nobody knows how to call it."""
    found = list(_own(name))
    kept = {"float": MOST_FLOATS, "int": MOST_INTS}
    floats = list(_from_operators(name, torch.float32))
    found += _spread(floats, kept["float"])
    whole = list(_from_operators(name, torch.int64))
    found += _spread(whole, kept["int"])
    if not found:
        found = _spread(list(_from_operators(name, torch.bool)), 4)
    return found


def _own(name: str) -> Iterator[Sample]:
    torch.manual_seed(SEED)
    for make in RECIPES.get(name, ()):
        args, keywords = make()
        yield Sample(tuple(args), keywords)


def _from_operators(name: str, dtype: torch.dtype) -> Iterator[Sample]:
    for info in _operators().get(_word(name), ()):
        if dtype not in info.supported_dtypes("cpu"):
            continue
        torch.manual_seed(SEED)
        try:
            for one in info.sample_inputs("cpu", dtype):
                sample = Sample((one.input, *one.args), dict(one.kwargs))
                if _usable(sample):
                    yield sample
        except Exception:  # a generator of inputs that does not work here is a function without samples
            continue


def _word(name: str) -> str:
    return name.rpartition(".")[2].removesuffix("_")


@functools.cache
def _operators() -> dict[str, list[Any]]:
    """PyTorch's descriptions of its operators, by the last word of every name they go by."""
    need("expecttest", "to read PyTorch's own operator samples", extra="dev")
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[Any]] = {}
    for info in op_db:
        if info.name.startswith(("sparse.", "masked.", "_", "jiterator", "signal.")):
            continue
        for word in dict.fromkeys([info.name, *(alias.name for alias in info.aliases)]):
            found.setdefault(word.rpartition(".")[2].removesuffix("_"), []).append(info)
    return found


def _usable(sample: Sample) -> bool:
    every = list(tensors_in((sample.args, sample.keywords)))
    if any(one.numel() > MOST_ELEMENTS or one.is_sparse or one.is_quantized or one.is_complex() for one in every):
        return False
    return _plain(sample.args) and _plain(sample.keywords)


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_plain(one) for one in value.values())
    if isinstance(value, list | tuple):
        return all(_plain(one) for one in value)
    known = bool | int | float | complex | str | torch.Tensor | torch.dtype | torch.device | torch.layout
    return value is None or isinstance(value, known | torch.memory_format | slice)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors_in(one)


def _spread(found: list[Sample], most: int) -> list[Sample]:
    """At most so many, taken evenly: neighbours in a list of samples are alike."""
    if len(found) <= most:
        return found
    step = len(found) / most
    return [found[int(at * step)] for at in range(most)]
