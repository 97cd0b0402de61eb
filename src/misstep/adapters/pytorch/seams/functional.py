"""Training with torch.func: gradients of a function, and new weights handed to its next call.

Nothing is written in place, so the step is found from the weights themselves: a call of `torch.func.grad` that is given
other weights than the last one shows that an update lay between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._C import _functorch
from torch._functorch import eager_transforms

from misstep.adapters.pytorch import tensors

if TYPE_CHECKING:
    from misstep.adapters.pytorch.seams.steps import StepSeam

NAME = "torch.func"
"""What a step's record says where an optimizer's type would stand."""
inside: Callable[[], Any] = _functorch.peek_interpreter_stack
"""The transformation under way, or None. Tensors inside of one have no memory of their own."""


class FunctionalSteps:
    """Finds the steps of a program that asks torch.func for gradients."""

    def __init__(self, seam: StepSeam) -> None:
        self.seam = seam
        self.pending = False
        self._given: list[tuple[torch.Tensor, int]] = []
        """The weights of the last call, held so that no other tensor takes their place in memory."""

    def install(self) -> Callable[[], None]:
        original = eager_transforms.grad_and_value_impl

        def grad_and_value_impl(func: Any, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> Any:
            seam, adapter = self.seam, self.seam.adapter
            if (
                torch.compiler.is_compiling()
                or adapter.inert
                or adapter.replaying
                or seam.elsewhere()
                or inside() is not None
            ):
                return original(func, argnums, has_aux, args, kwargs)
            given = [args[place] for place in ((argnums,) if isinstance(argnums, int) else argnums)]
            adapter.guarded("before a function's gradient", lambda: self._begin(given))
            result = original(func, argnums, has_aux, args, kwargs)
            value = result[1][0] if has_aux else result[1]
            if adapter.tape.armed and tensors.nonfinite([value]):
                again = lambda *args, **kwargs: original(func, argnums, has_aux, args, kwargs)  # noqa: E731
                adapter.guarded(
                    "after a function's gradient", adapter.tape.computed, again, args, kwargs, result, value
                )
            adapter.guarded("after a function's gradient", lambda: self._end(given, result[0], value))
            return result

        eager_transforms.grad_and_value_impl = grad_and_value_impl

        def undo() -> None:
            if eager_transforms.grad_and_value_impl is grad_and_value_impl:
                eager_transforms.grad_and_value_impl = original

        return undo

    def close(self) -> None:
        """End the step under way: the program is over, or other weights are in use."""
        if self.pending:
            self.pending = False
            self._given = []
            self.seam.updated_by_hand([], NAME)

    def _begin(self, given: Any) -> None:
        self.seam.adapter.go_live()
        now = [(weight, weight._version) for weight in tensors.leaves(given)]
        same = len(now) == len(self._given) and all(
            new is old and count == before for (new, count), (old, before) in zip(now, self._given)
        )
        if self.pending and not same:
            self.close()
        self._given = now

    def _end(self, given: Any, gradients: Any, value: torch.Tensor) -> None:
        seam, adapter = self.seam, self.seam.adapter
        held, self.pending = self.pending, False  # backward_begins closes what is pending
        seam.backward_begins(value)
        self.pending = True
        found = list(tensors.leaves(gradients))
        if adapter.level == "off" or held:
            return
        bad = set(tensors.nonfinite(found))
        chosen = [place for place in range(len(found)) if adapter.level != "guard" or place in bad]
        names = list(_names(given))
        catalog = adapter.catalog
        numbers = [catalog.tensor(catalog.node(names[place], "parameter", "Parameter"), "grad") for place in chosen]
        adapter.seer.many(numbers, [found[place] for place in chosen], [None] * len(chosen))
        adapter.listener.before_update(adapter)


def _names(given: Any) -> Iterator[str]:
    """A name for each weight: its path in the dictionaries and lists it was handed over in."""
    for path, leaf in torch.utils._pytree.tree_flatten_with_path(given)[0]:
        if isinstance(leaf, torch.Tensor):
            yield ".".join(str(getattr(key, "key", getattr(key, "idx", key))) for key in path[1:]) or "param"
