"""Weights and buffers at the end of a run: what is not finite there was left behind, whether or not a step showed it.

A BatchNorm buffer that turned NaN spoils every evaluation and no training step; nothing else looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from misstep import kernels
from misstep.adapters.base import Adapter
from misstep.core.address import Address, Role
from misstep.core.stats import TensorStats
from misstep.core.watching.watch import Hit
from misstep.sentences import hits as say

CONDITION = "state_not_finite"
_MOST = 20
"""Tensors named: a network that is bad as a whole needs no list."""
_LARGEST_BYTES = 4 << 30
"""Altogether: beyond this, looking would delay the end of the program."""


def bad_at_the_end(adapter: Adapter, *, step: int, rank: int, take_id: Callable[[], int]) -> Iterator[Hit]:
    """A hit for each weight or buffer that is not finite now."""
    spent = found = 0
    for role, name, tensor in _state(adapter):
        values = adapter.array(tensor)
        spent += values.nbytes
        if spent > _LARGEST_BYTES or found == _MOST:
            return
        if values.dtype.kind in "biu":
            continue
        record = kernels.summarize(np.ascontiguousarray(values))
        stats = TensorStats.of(record, dtype=adapter.dtype_name(tensor), shape=values.shape)
        if not stats.finite:
            found += 1
            yield Hit(
                id=take_id(),
                watchpoint=0,
                address=Address(name, role, step=step, rank=rank),
                reason=say.BAD_AT_THE_END.of(description=stats.describe()),
                severity="error",
                stats=stats,
                condition=CONDITION,
            )


def _state(adapter: Adapter) -> Iterator[tuple[Role, str, object]]:
    for name, tensor in adapter.parameters():
        yield "param", name, tensor
    for name, tensor in adapter.buffers():
        yield "buffer", name, tensor
