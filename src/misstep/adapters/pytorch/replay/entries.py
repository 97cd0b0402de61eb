"""What a tape is made of: one entry for each call of the training loop, and where the tensors in it come from."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from misstep import kernels
from misstep.adapters.pytorch.replay.state import NetworkState

_LARGEST_ARRAY = 64 << 20


class Made(NamedTuple):
    """A tensor made on the tape: by which entry, at which place of its output."""

    entry: int
    place: int


def has_history(tensor: torch.Tensor) -> bool:
    """Whether gradients flow on from it; torch refuses to tell of a view made without them and written to since."""
    try:
        return tensor.grad_fn is not None
    except RuntimeError:
        return False


class Held:
    """A tensor from outside."""

    __slots__ = ("foreign", "tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.foreign = has_history(tensor)
        """It has a history that the tape did not see. Held without it: the user's graph must be freed as usual."""
        self.tensor = tensor.detach() if self.foreign else tensor
        self.version = 0 if tensor.is_inference() else tensor._version

    @property
    def overwritten(self) -> bool:
        return not self.tensor.is_inference() and self.tensor._version != self.version


@dataclass(slots=True, weakref_slot=True)
class Entry:
    """One call of the training loop."""

    serial: int
    kind: Literal["module", "function", "backward", "loss"]
    call: Any
    args: Any
    kwargs: dict[str, Any]
    line: tuple[CodeType, int] | None
    autocast: tuple[tuple[str, torch.dtype], ...]
    uses: list[int]
    """Entries whose outputs it takes."""
    outputs: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    writes: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    """What it writes into; for a view, the whole behind it."""
    state: NetworkState | None = None
    random: torch.Tensor | None = None
    """torch's generator when a module was called."""
    origin: tuple[tuple[int, ...], Any] = ((), None)
    """Which samples of which dataset the data loader handed out last, when a module was called."""
    arrived: dict[int, torch.Tensor] = field(default_factory=dict)
    """By place in a module's output: the gradient that backward brought there, where it is kept."""
    networks: tuple[nn.Module, ...] = ()
    """Of a compiled function: the networks it calls."""
    compiled: bool = False
    """It ran as compiled code."""
    grad: bool = True
    """Whether gradients were on."""
    stale: bool = False
    """It has written to its arguments already: what they held before is not known."""
    losses: tuple[torch.Tensor, ...] = ()
    gradients: list[tuple[weakref.ref[torch.Tensor], int, int]] | None = None
    """After a backward: (parameter, version of its gradient, digest) where somebody may change gradients later."""

    def alive(self) -> bool:
        return self.kind in ("backward", "loss") or any(ref() is not None for ref in (*self.outputs, *self.writes))


class CompiledCall(NamedTuple):
    """A compiled function about to be called."""

    function: Any
    args: Any
    kwargs: dict[str, Any]
    frame: FrameType | None
    networks: tuple[nn.Module, ...]
    """The networks it calls."""
    root: nn.Module | None
    """One module that holds them all."""


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A container of the same kind with every item changed; anything else as it is."""
    if isinstance(value, tuple):
        items = [change(item) for item in value]
        if type(value) is tuple:
            return tuple(items)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is list:
        return [change(item) for item in value]
    if isinstance(value, dict):
        items_by_key = {key: change(item) for key, item in value.items()}
        if type(value) is dict:
            return items_by_key
        try:
            return type(value)(**items_by_key) if dataclasses.is_dataclass(value) else type(value)(items_by_key)
        except TypeError:
            return items_by_key
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: change(getattr(value, one.name)) for one in dataclasses.fields(value) if one.init}
        return dataclasses.replace(value, **fields)
    return value


def held_in(value: Any, depth: int = 0) -> Iterator[Held]:
    """Every tensor from outside in the arguments of an entry."""
    if isinstance(value, Held):
        yield value
    elif isinstance(value, Made | str | int | float) or value is None or depth > 8:
        return
    elif isinstance(value, tuple | list):
        for item in value:
            yield from held_in(item, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from held_in(item, depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for one in dataclasses.fields(value):
            yield from held_in(getattr(value, one.name, None), depth + 1)


def array_digest(array: Any) -> int:
    """Of an array of numpy that lies in one piece; 0 for others, which are taken on trust."""
    if not array.flags.c_contiguous or array.nbytes > _LARGEST_ARRAY or array.dtype.hasobject:
        return 0
    return kernels.digest(array.ctypes.data, array.nbytes)


def catcher(arrived: dict[int, torch.Tensor], place: int, number: int) -> Callable[[Any], None]:
    """A hook that keeps the gradient that arrives at an output."""

    def catch(gradients: Any) -> None:
        if gradients[number] is not None:
            arrived[place] = gradients[number].detach()

    return catch


def autocast() -> tuple[tuple[str, torch.dtype], ...]:
    """Which devices compute in a lower precision here."""
    if not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda"):
        return ()
    return tuple(
        (device, torch.get_autocast_dtype(device)) for device in ("cpu", "cuda") if torch.is_autocast_enabled(device)
    )


def reachable(entries: list[Entry]) -> list[Entry]:
    """Those whose results somebody still holds, and what these were made of."""
    needed: set[int] = set()
    kept = []
    for entry in reversed(entries):
        if entry.serial in needed or entry.alive():
            kept.append(entry)
            needed.update(entry.uses)
    return kept[::-1]
