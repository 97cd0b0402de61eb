"""Calls of our own for what PyTorch's operator samples leave out, or for how people really write a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Made = tuple[tuple[Any, ...], dict[str, Any]]
Recipe = Callable[[], Made]


def _x(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def _whole(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape)


def call(*args: Any, **keywords: Any) -> Recipe:
    """Arguments may be functions, which are called when the sample is made, so that every tensor is fresh."""
    return lambda: (tuple(_made(one) for one in args), {key: _made(one) for key, one in keywords.items()})


def _made(one: Any) -> Any:
    return one() if callable(one) and not isinstance(one, torch.dtype | type) else one


def x(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: _x(*shape)


def whole(high: int, *shape: int) -> Callable[[], torch.Tensor]:
    return lambda: _whole(high, *shape)


def array(*shape: int) -> Callable[[], Any]:
    return lambda: np.random.default_rng(3).standard_normal(shape).astype(np.float32)


_SHAPED = (call(x(2, 3, 4), 2, 12), call(x(2, 3, 4), -1, 4), call(x(2, 3, 4), (6, 4)))
_NCHW = x(2, 3, 8, 8)

RECIPES: dict[str, tuple[Recipe, ...]] = {
    "torch.tensor": (
        call([1.0, 2.0]),
        call(2.5),
        call([[1, 2], [3, 4]]),
        call([1, 2], dtype=torch.float32),
        call(array(2, 3)),
    ),
    "torch.as_tensor": (call([1.0, 2.0]), call(array(2, 3)), call([1, 2], dtype=torch.float32)),
    "torch.from_numpy": (call(array(2, 3)), call(array(4))),
    "torch.zeros": (call(2, 3), call((2, 3)), call(4), call(2, 3, dtype=torch.int64)),
    "torch.ones": (call(2, 3), call((2, 3)), call(4), call(2, 3, dtype=torch.int64)),
    "torch.full": (call((2, 3), 1.5), call((2, 3), 2.0, dtype=torch.float32)),
    "torch.arange": (call(5), call(1, 5), call(1, 8, 2), call(5, dtype=torch.float32)),
    "torch.linspace": (call(0.0, 1.0, 5), call(-1.0, 1.0, steps=7)),
    "torch.eye": (call(3), call(3, 4)),
    "torch.rand": (call(64, 64), call((64, 64)), call(4096)),
    "torch.randn": (call(64, 64), call((64, 64)), call(4096)),
    "torch.randint": (call(0, 10, (64, 64)), call(10, (64, 64))),
    "torch.randperm": (call(1000),),
    "torch.rand_like": (call(x(64, 64)),),
    "torch.randn_like": (call(x(64, 64)),),
    "torch.is_tensor": (call(x(2, 2)), call(1.0)),
    "torch.is_floating_point": (call(x(2, 2)), call(whole(3, 2))),
    "torch.numel": (call(x(2, 3)),),
    "torch.detach": (call(x(2, 3)),),
    "torch.relu": (call(x(3, 4)),),
    "torch.dropout": (call(x(64, 64), 0.5, True), call(x(3, 4), 0.5, False)),
    "torch.einsum": (
        call("ij,jk->ik", x(3, 4), x(4, 5)),
        call("bhqd,bhkd->bhqk", x(2, 2, 3, 4), x(2, 2, 5, 4)),
        call("bij,bjk->bik", x(2, 3, 4), x(2, 4, 5)),
    ),
    "torch.flatten": (call(x(2, 3, 4, 5), 1), call(x(2, 3, 4)), call(x(2, 3, 4, 5), start_dim=1, end_dim=2)),
    "torch.nn.functional.dropout": (call(x(64, 64), 0.5, True), call(x(3, 4), p=0.3, training=False), call(x(64, 64))),
    "torch.nn.functional.dropout2d": (call(x(64, 64, 2, 2), 0.5, True), call(x(3, 4, 2, 2), p=0.3, training=False)),
    "torch.nn.functional.relu": (call(x(3, 4)), call(x(3, 4), inplace=True)),
    "torch.nn.functional.gelu": (call(x(3, 4)), call(x(3, 4), approximate="tanh")),
    "torch.nn.functional.cross_entropy": (
        call(x(5, 4), whole(4, 5)),
        call(x(5, 4, 3), whole(4, 5, 3)),
        call(x(5, 4), whole(4, 5), label_smoothing=0.1),
        call(x(5, 4), whole(4, 5), reduction="sum"),
        call(x(5, 4), whole(4, 5), reduction="none"),
        call(x(5, 4), whole(4, 5), ignore_index=1),
    ),
    "torch.nn.functional.interpolate": (
        call(_NCHW, scale_factor=2),
        call(_NCHW, scale_factor=2, mode="nearest"),
        call(_NCHW, size=(16, 16)),
        call(_NCHW, size=(16, 16), mode="bilinear", align_corners=False),
        call(_NCHW, size=(12, 20), mode="bilinear", align_corners=True),
        call(_NCHW, scale_factor=2, mode="bilinear"),
        call(_NCHW, scale_factor=2, mode="bilinear", align_corners=False),
    ),
    "torch.nn.functional.max_pool2d": (call(_NCHW, 2), call(_NCHW, 3, 2, 1), call(_NCHW, 2, stride=2)),
    "torch.nn.functional.avg_pool2d": (call(_NCHW, 2), call(_NCHW, 3, 2, 1), call(_NCHW, 8)),
    "torch.nn.functional.conv2d": (
        call(_NCHW, x(4, 3, 3, 3), x(4)),
        call(_NCHW, x(4, 3, 3, 3), padding=1),
        call(_NCHW, x(4, 3, 3, 3), x(4), 2, 1),
        call(_NCHW, x(3, 1, 3, 3), None, 1, 1, 1, 3),
    ),
    "torch.nn.functional.pad": (
        call(_NCHW, (1, 1)),
        call(_NCHW, (1, 2, 3, 4)),
        call(_NCHW, (1, 1, 1, 1), mode="reflect"),
        call(_NCHW, (1, 1), value=2.0),
        call(_NCHW, (1, 1, 1, 1), "constant", 0),
    ),
    "torch.nn.functional.one_hot": (call(whole(4, 5), 4), call(whole(4, 5), num_classes=6), call(whole(4, 3, 2), 4)),
    "torch.nn.functional.fold": (call(x(2, 12, 9), (4, 4), (2, 2)),),
    "torch.nn.functional.affine_grid": (call(x(2, 2, 3), (2, 3, 4, 5), align_corners=False),),
    "torch.nn.functional.lp_pool2d": (call(_NCHW, 2, 2),),
    "torch.nn.functional.lp_pool1d": (call(x(2, 3, 8), 2, 2),),
    "torch.nn.functional.gumbel_softmax": (call(x(64, 16)), call(x(64, 16), tau=0.5, hard=True)),
    "torch.nn.functional.normalize": (call(x(3, 4)), call(x(3, 4), dim=-1), call(x(3, 4), p=1.0, dim=0)),
    "torch.Tensor.size": (call(x(2, 3, 4)), call(x(2, 3, 4), 1), call(x(2, 3, 4), -1)),
    "torch.Tensor.dim": (call(x(2, 3, 4)),),
    "torch.Tensor.ndimension": (call(x(2, 3, 4)),),
    "torch.Tensor.numel": (call(x(2, 3, 4)),),
    "torch.Tensor.nelement": (call(x(2, 3, 4)),),
    "torch.Tensor.element_size": (call(x(2, 3, 4)),),
    "torch.Tensor.shape": (call(x(2, 3, 4)),),
    "torch.Tensor.ndim": (call(x(2, 3, 4)),),
    "torch.Tensor.T": (call(x(2, 3)),),
    "torch.Tensor.mT": (call(x(2, 3)),),
    "torch.Tensor.data": (call(x(2, 3)),),
    "torch.Tensor.is_floating_point": (call(x(2, 2)), call(whole(3, 2))),
    "torch.Tensor.is_complex": (call(x(2, 2)),),
    "torch.Tensor.is_contiguous": (call(x(2, 2)),),
    "torch.Tensor.numpy": (call(x(2, 3)), call(whole(5, 2, 3))),
    "torch.Tensor.tolist": (call(x(2, 3)),),
    "torch.Tensor.item": (call(x()), call(x(1))),
    "torch.Tensor.detach": (call(x(2, 3)),),
    "torch.Tensor.cpu": (call(x(2, 3)),),
    "torch.Tensor.cuda": (),
    "torch.Tensor.contiguous": (call(x(2, 3)),),
    "torch.Tensor.requires_grad_": (call(x(2, 3)),),
    "torch.Tensor.to": (call(x(2, 3), torch.float16), call(x(2, 3), torch.int64), call(x(2, 3), dtype=torch.float64)),
    "torch.Tensor.type": (call(x(2, 3), torch.int64),),
    "torch.Tensor.type_as": (call(whole(4, 3), x(2)),),
    "torch.Tensor.view": _SHAPED,
    "torch.Tensor.reshape": _SHAPED,
    "torch.Tensor.view_as": (call(x(2, 6), x(3, 4)),),
    "torch.Tensor.permute": (call(x(2, 3, 4), 0, 2, 1), call(x(2, 3, 4), (2, 0, 1)), call(x(2, 3, 4), 0, -1, 1)),
    "torch.Tensor.expand": (call(x(1, 3), 4, 3), call(x(1, 3), (4, 3)), call(x(1, 3), 4, -1), call(x(3), 2, -1)),
    "torch.Tensor.repeat": (call(x(2, 3), 2, 1), call(x(2, 3), (2, 1)), call(x(3), 2, 2)),
    "torch.Tensor.tile": (call(x(2, 3), (2, 1)), call(x(2, 3), 2, 1)),
    "torch.Tensor.flip": (call(x(2, 3), 0), call(x(2, 3), (0, 1)), call(x(2, 3), [1])),
    "torch.Tensor.new_zeros": (call(x(2), 3, 4), call(x(2), (3, 4))),
    "torch.Tensor.new_ones": (call(x(2), 3, 4), call(x(2), (3, 4))),
    "torch.Tensor.new_full": (call(x(2), (3, 4), 1.5),),
    "torch.Tensor.new_tensor": (call(x(2), [1.0, 2.0]),),
    "torch.Tensor.split": (call(x(6, 4), 2), call(x(6, 4), 2, dim=1), call(x(6, 4), [2, 4]), call(x(6, 4), 3, -1)),
    "torch.Tensor.unflatten": (call(x(2, 12), 1, (3, 4)), call(x(2, 12), -1, (3, 4))),
    "torch.Tensor.flatten": (call(x(2, 3, 4, 5), 1), call(x(2, 3, 4)), call(x(2, 3, 4, 5), start_dim=1, end_dim=2)),
    "torch.Tensor.relu": (call(x(3, 4)),),
    "torch.Tensor.backward": (),
    "torch.Tensor.masked_fill": (call(x(3, 4), lambda: _x(3, 4) > 0, float("-inf")),),
    "torch.Tensor.copy_": (call(x(3, 4), x(3, 4)),),
    "torch.Tensor.fill_": (call(x(3, 4), 2.0),),
    "torch.Tensor.zero_": (call(x(3, 4)),),
    "torch.Tensor.normal_": (call(x(64, 64)), call(x(64, 64), mean=0.0, std=0.02)),
    "torch.Tensor.uniform_": (call(x(64, 64)), call(x(64, 64), -0.1, 0.1)),
}
"""By full name. What a network really calls comes first; a name that is here and in PyTorch's samples gets both."""
