"""Hears the torch functions that a training loop calls between its networks and backward, and nothing else.

A torch function mode, on torch's stack only there. It cannot be unlinked from inside its own handler (torch would push
it back), and `loss.backward()` arrives through it: then it falls silent, and the next hook unlinks it.
`autograd.Function.apply` passes by every mode, so that is replaced while the ear is open.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

Hear = Callable[[Any, Any, dict[str, Any], FrameType | None], Any]
"""Called with a function, its arguments and who called it, to call it in turn."""

_TENSOR: Any = torch.Tensor
"""Its attributes are descriptors; the stubs declare the values they give."""
_FUNCTION: Any = torch.autograd.Function

_SILENT: frozenset[Any] = frozenset(
    {
        _TENSOR.grad.__get__,
        _TENSOR.grad.__set__,
        _TENSOR.shape.__get__,
        _TENSOR.grad_fn.__get__,
        _TENSOR.requires_grad.__get__,
        _TENSOR.is_leaf.__get__,
        _TENSOR.device.__get__,
        _TENSOR.dtype.__get__,
        _TENSOR.size,
        _TENSOR.dim,
        _TENSOR.item,
        _TENSOR.numel,
        _TENSOR._version.__get__,
        torch._foreach_zero_,
    }
)
"""Never taped: they make no tensor, or (zero_grad between forward and backward) only concern the gradients."""


_MOVES: frozenset[Any] = frozenset(
    {
        *(_TENSOR.__getitem__, _TENSOR.view, _TENSOR.reshape, _TENSOR.permute, _TENSOR.transpose, _TENSOR.squeeze),
        *(_TENSOR.unsqueeze, _TENSOR.flatten, _TENSOR.contiguous, _TENSOR.clone, _TENSOR.detach, _TENSOR.numpy),
        *(_TENSOR.tolist, _TENSOR.argmax, _TENSOR.long, _TENSOR.cpu, _TENSOR.zero_, _TENSOR.__len__, _TENSOR.__iter__),
        *(torch.stack, torch.cat, torch.from_numpy, torch.tensor, torch.as_tensor, torch.arange, torch.randperm),
        *(torch.rand, torch.randn, torch.randint, torch.zeros, torch.ones, torch.isnan, torch.isfinite, torch.isinf),
    }
)
"""Between steps never remembered: none of them makes something bad of finite values."""

_IN_PLACE = frozenset(
    f"__i{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
)


def writes(function: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a torch function writes into what it is given."""
    if "out" in kwargs:
        return True
    name = getattr(function, "__name__", "")
    if name.startswith("__"):
        return name in ("__setitem__", "__set__", "__delitem__") or (name.startswith("__i") and name in _IN_PLACE)
    return name.endswith("_") and not name.endswith("__")


class Ear(TorchFunctionMode):
    """Passes what it hears on to `hear`, while it listens."""

    def __init__(self, hear: Hear) -> None:
        super().__init__()
        self.inside = 0
        """Functions heard that are still running: what they call is not the loop's."""
        self._hear = hear
        self._listening = False
        self._always = False
        """Also what is called without gradients."""
        self._linked = False
        self._apply: Any = None

    def open(self) -> None:
        """Be ready to listen."""
        self._apply = torch.autograd.Function.__dict__["apply"]
        original = self._apply.__func__
        is_compiling = torch.compiler.is_compiling
        ear = self

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not ear._listening or ear.inside or not torch.is_grad_enabled():
                return original(cls, *args, **kwargs)
            return ear._hear(cls.apply, args, kwargs, sys._getframe(1))

        apply.__misstep__ = True  # type: ignore[attr-defined]
        _FUNCTION.apply = classmethod(apply)

    def close(self) -> None:
        """Leave no trace in torch."""
        self.pause()
        current = torch.autograd.Function.__dict__.get("apply")
        if getattr(getattr(current, "__func__", None), "__misstep__", False):
            _FUNCTION.apply = self._apply

    def listen(self, *, always: bool = False) -> None:
        """Hear the functions called from here on; `always`: without gradients, too."""
        self._always = always
        if not self._linked and torch._C._len_torch_function_stack() == 0:
            torch._C._push_on_torch_function_stack(self)
            self._linked = True
        elif not self._linked:
            above = _unstack(None)
            if above and isinstance(above[-1], DeviceContext):
                # torch keeps the default device at the very bottom and looks for it there.
                torch._C._push_on_torch_function_stack(above.pop())
            torch._C._push_on_torch_function_stack(self)
            _restack(above)
            self._linked = True
        self._listening = True

    def pause(self) -> None:
        """Hear nothing; off torch's stack, when we are not called from it."""
        self._listening = False
        if self._linked and not self.inside:
            above = _unstack(self)
            _restack(above)
            self._linked = False

    @contextlib.contextmanager
    def deaf(self) -> Iterator[None]:
        """Hear nothing of what is called in here."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Checked first: Dynamo traces this line when a compiled function is called, and must find nothing else.
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        if func is _TENSOR.backward:
            with self.deaf():
                return func(*args, **kwargs)
        if not self._listening or self.inside or func in _SILENT:
            return func(*args, **kwargs)
        if func in _MOVES if self._always else not torch.is_grad_enabled():
            return func(*args, **kwargs)
        return self._hear(func, args, kwargs, sys._getframe(1))


def _unstack(until: Any) -> list[Any]:
    """Take modes off torch's stack, down to and with `until`; those that lay above it, topmost first."""
    above = []
    while torch._C._len_torch_function_stack() > 0:
        mode = torch._C._pop_torch_function_stack()
        if mode is until:
            break
        above.append(mode)
    return above


def _restack(modes: list[Any]) -> None:
    for mode in reversed(modes):
        torch._C._push_on_torch_function_stack(mode)
