"""Whether weights may be copied before every update: only where that costs next to nothing."""

from __future__ import annotations

from time import thread_time

SHARE = 0.005
"""Of a step, that copying may take."""
_BYTES_PER_SECOND = 4e9
_MOST_BYTES = 256 << 20


class Purse:
    """What the step under way has to spend on copies."""

    def __init__(self, seconds_per_tensor: float) -> None:
        self._seconds_per_tensor = seconds_per_tensor
        self._last = self._seconds = 0.0

    def step(self) -> None:
        """An update begins, and with it the account of the step it ends."""
        now = thread_time()  # not wall time: on a busy machine every step looks long enough
        self._seconds, self._last = now - self._last, now

    def affords(self, tensors: int, size: int = 0, *, at_any_cost: bool = False) -> bool:
        """Copying so many tensors of so many bytes in all; `at_any_cost`: as long as there is memory for it."""
        cost = size / _BYTES_PER_SECOND + tensors * self._seconds_per_tensor
        return size <= _MOST_BYTES and (at_any_cost or cost <= SHARE * self._seconds)
