"""A value of the user's program in a few words, for the frames of a flight record."""

from __future__ import annotations

import math
from collections.abc import Sequence

from misstep import kernels
from misstep.adapters.base import Adapter
from misstep.adapters.recording import Witness
from misstep.core.stats import TensorStats

_LARGEST_DESCRIBED = 1 << 26


class Values:
    """Knows the tensors of every framework in use."""

    def __init__(self, pairs: Sequence[tuple[Adapter, Witness]]) -> None:
        self._pairs = pairs

    def tensor(self, value: object) -> str | None:
        """A tensor with its statistics; None for anything else."""
        for adapter, witness in self._pairs:
            if witness.is_tensor(value):
                text = self.shape(value) or ""
                try:
                    if witness.here(value) and 0 < math.prod(getattr(value, "shape", ())) <= _LARGEST_DESCRIBED:
                        stats = TensorStats.of(
                            kernels.summarize(adapter.array(value)), dtype=adapter.dtype_name(value), shape=()
                        )
                        text += f" · {stats.describe()}"
                except Exception:
                    pass  # freed, moved or of a type nobody can read: its shape is told all the same
                return text
        return None

    def shape(self, value: object) -> str | None:
        """A tensor by its type and shape; None for anything else."""
        for adapter, witness in self._pairs:
            if witness.is_tensor(value):
                return f"{adapter.dtype_name(value)} {list(getattr(value, 'shape', ()))}"
        return None
