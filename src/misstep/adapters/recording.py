"""What a framework can tell the flight recorder beyond the rows of a step, in words that no framework owns.

A `Witness` stands beside an adapter: it lends it the recorder's cells, tells what the network was called with, and is
asked at the end of a process who held the memory. Whatever it cannot know it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from misstep.core.cells import Cells

OnNetwork = Callable[[Any, dict[str, Any], FrameType | None], None]
"""Called with the arguments of every network and the frame that called it, before it runs."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody who holds memory: a weight, an optimizer's state, a variable of the program."""

    name: str
    kind: str
    """weight, gradient, optimizer state, buffer, variable, or other."""
    bytes: int
    count: int = 1
    dtype: str = ""
    shape: tuple[int, ...] = ()


class Witness(Protocol):
    """One framework's part of the flight record."""

    def begin(self, cells: Cells, on_network: OnNetwork) -> None:
        """Write to these cells from now on."""

    def end(self) -> None: ...

    def modules(self) -> Iterator[tuple[int, str, str]]:
        """(number in the cells, name, type) of every module known."""

    def tensors(self, values: Any) -> list[Any]:
        """The tensors inside nested arguments."""

    def here(self, tensor: Any) -> bool:
        """Whether its values are in this machine's memory, to be read without waiting for a device."""

    def memory(self) -> dict[str, int]:
        """Bytes the framework's own allocators hold, by device; empty when it keeps no account."""

    def random(self) -> dict[str, str]:
        """A digest of each random generator's state."""

    def device(self) -> dict[str, str]: ...

    def holders(self, variables: Iterable[tuple[str, object]], *, search: bool) -> list[Holder]:
        """Who holds memory now, the largest first; `variables` are those of the program's frames.

        With `search` also tensors nobody has a name for, which takes a tenth of a second.
        """

    def is_tensor(self, value: object) -> bool: ...


def largest(holders: Iterable[Holder], most: int = 16) -> list[Holder]:
    """Equal things put together, the largest first."""
    merged: dict[tuple[str, str, str, tuple[int, ...]], Holder] = {}
    for one in holders:
        key = (one.name, one.kind, one.dtype, one.shape)
        known = merged.get(key)
        if known is not None:
            one = Holder(one.name, one.kind, known.bytes + one.bytes, known.count + one.count, one.dtype, one.shape)
        merged[key] = one
    return sorted(merged.values(), key=lambda one: -one.bytes)[:most]
