"""Print inside torch.compile: two operators the compiler keeps and does not look into.

`misstep::print_values` has an ordered effect, so compiled prints appear, and in the order they were written.
`misstep::print_gradient` is the identity; its derivative prints what flows back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

from misstep.train.printing import packed, show_numbered, split, texts_of, to_array

is_compiling = torch.compiler.is_compiling


def show_compiled(number: int, gradient: bool, values: tuple[Any, ...]) -> Any:
    """One call of Print while the compiler traces it."""
    words, tensors = split(values, _is_tensor)
    torch.ops.misstep.print_values(number, packed(words), tensors)
    if not gradient:
        return None
    label = packed((*texts_of(words), "gradient:", None))
    handed_back = [
        torch.ops.misstep.print_gradient(number, label, tensor) if tensor.is_floating_point() else tensor
        for tensor in tensors
    ]
    return handed_back[0] if len(handed_back) == 1 else tuple(handed_back)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


@torch.library.custom_op("misstep::print_values", mutates_args=())
def _print_values(number: int, words: str, tensors: Sequence[torch.Tensor]) -> None:
    show_numbered(number, words, [to_array(tensor) for tensor in tensors])


@_print_values.register_fake
def _(number: int, words: str, tensors: Sequence[torch.Tensor]) -> None:
    return None


_register_effectful_op(torch.ops.misstep.print_values.default, _EffectType.ORDERED)


@torch.library.custom_op("misstep::print_gradient", mutates_args=())
def _print_gradient(number: int, words: str, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone()


@_print_gradient.register_fake
def _(number: int, words: str, tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor)


@torch.library.custom_op("misstep::print_flowing", mutates_args=())
def _print_flowing(number: int, words: str, gradient: torch.Tensor) -> torch.Tensor:
    # It returns what the next operator needs, so the compiler cannot leave it out.
    show_numbered(number, words, [to_array(gradient)])
    return gradient.clone()


@_print_flowing.register_fake
def _(number: int, words: str, gradient: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(gradient)


def _remember(ctx: Any, inputs: tuple[int, str, torch.Tensor], output: torch.Tensor) -> None:
    ctx.number, ctx.words, _ = inputs


def _flow_back(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, torch.Tensor]:
    return None, None, torch.ops.misstep.print_flowing(ctx.number, ctx.words, gradient)


_print_gradient.register_autograd(_flow_back, setup_context=_remember)
