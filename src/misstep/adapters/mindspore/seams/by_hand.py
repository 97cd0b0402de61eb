"""Training without an optimizer of MindSpore: weights moved by `assign`, `set_data`, in compiled code, or in numpy.

The rule is the same as for PyTorch: a backward, and after it weights that have changed when the next forward begins,
are a step. MindSpore counts no versions of what `assign` and `set_data` write, so the weights themselves are compared.

    backward ends ─► gradients checked ─► … the program moves its weights … ─► next forward begins: moved? a step
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from misstep import kernels
from misstep.adapters.mindspore.names import OPTIMIZERS
from misstep.adapters.mindspore.tensors import memory_of
from misstep.core.stats import ITEM_BYTES

if TYPE_CHECKING:
    from misstep.adapters.mindspore.seams.optimizer_updates import Updates

NAME = "by hand"
"""What a step's record says where an optimizer's type would stand."""


class UpdatesByHand:
    """Finds the steps of a program in which no optimizer of MindSpore holds the weights."""

    def __init__(self, updates: Updates) -> None:
        self._updates = updates
        self.pending = False
        """Gradients were computed, and the weights have not been seen to move since."""
        self._weights: list[Any] = []
        self._digests: list[int] = []
        self._held: set[int] = set()
        self._always: set[int] = set()
        self._optimizers: list[weakref.ref[Any]] = []
        self._searched = False

    def unheld(self, weights: Sequence[Any]) -> list[Any]:
        """The given weights, when no optimizer holds one of them; else none."""
        self._learn(self._updates.adapter.seams.optimizers())
        if not self._searched and not self._holds(weights):
            self._searched = True  # one that was made before misstep was attached
            made_before = [thing for thing in gc.get_objects() if issubclass(type(thing), OPTIMIZERS)]
            self._always = {id(weight) for one in made_before for weight in one.parameters}
        return [] if self._holds(weights) else list(weights)

    def _learn(self, made: list[Any]) -> None:
        if len(made) != len(self._optimizers) or any(ref() is not one for ref, one in zip(self._optimizers, made)):
            self._optimizers = [weakref.ref(one) for one in made]
            self._held = {id(weight) for one in made for weight in one.parameters}

    def _holds(self, weights: Sequence[Any]) -> bool:
        return any(id(weight) in self._held or id(weight) in self._always for weight in weights)

    def gradients_ready(self, weights: Sequence[Any]) -> None:
        """These weights were differentiated: if they change, that was an update."""
        if not self.pending:
            self.pending = True
            self._weights, self._digests = list(weights), digests(weights)

    def forget(self) -> None:
        self.pending, self._weights, self._digests = False, [], []

    def moved(self) -> list[Any]:
        """The weights, when they have changed since backward; each time they have, once."""
        if not self.pending or digests(self._weights) == self._digests:
            return []
        weights = self._weights
        self.forget()
        return weights


def digests(weights: Sequence[Any]) -> list[int]:
    """What the weights hold now, in one number each."""
    memories = [memory for weight in weights if (memory := memory_of(weight)) is not None]
    return kernels.digest_many(
        [memory.address for memory in memories],
        [memory.elements * ITEM_BYTES[memory.dtype] for memory in memories],
    )
