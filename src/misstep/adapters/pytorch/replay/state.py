"""The state a network was called with: what a forward reads beside its weights and its batch.

Random numbers of torch, numpy and Python, the buffers a forward writes to (running means), and the Python attributes it
changes (a counter, a carried hidden state). Which ones change is learned from the first calls, so that a network
without any costs nothing to hold.
"""

from __future__ import annotations

import copy
import ctypes
import random
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from misstep.adapters.pytorch.replay.generators import Drawn, is_generator
from misstep.adapters.replaying.copies import CONTAINERS
from misstep.adapters.replaying.python_random import Held, Told, held_now

_LEARNING_CALLS = 3
"""Calls of a network that are watched in full before only what changed in them is held."""
_MERSENNE_BYTES = 624 * 4 + 4
"""The state of numpy's MT19937: 624 words and a position. Copied as memory: get_state() costs 40 µs, this 0.6."""
_LAID_AT: list[Any] = [None, 0]
"""Numpy's generator, and where its state lies: to ask for that costs three times the copy."""
_LARGEST_CONTAINER = 10_000
_OF_TORCH = frozenset(vars(nn.Module()))
"""Attributes every module has (its hooks, its parts); a user's own are all others."""


@dataclass(frozen=True, slots=True)
class Randomness:
    """Every generator a forward may draw from."""

    torch: Tensor
    cuda: tuple[Tensor, ...]
    python: Held | Told
    numpy: Any
    """None without numpy, the memory of its generator, or its full state (`exactly`)."""

    @classmethod
    def now(cls, *, exactly: bool = False) -> Randomness:
        cuda = tuple(torch.cuda.get_rng_state_all()) if torch.cuda.is_initialized() else ()
        return cls(torch.get_rng_state(), cuda, held_now(), _numpy_state(exactly))

    def plain(self) -> dict[str, Any]:
        """In tensors and numbers alone, for a file that nobody has to trust."""
        numpy = self.numpy
        if isinstance(numpy, dict):
            numpy = {**numpy, "state": {name: _plain(value) for name, value in numpy["state"].items()}}
        elif isinstance(numpy, bytes):
            numpy = torch.frombuffer(bytearray(numpy), dtype=torch.uint8)
        return {"torch": self.torch, "cuda": list(self.cuda), "python": list(self.python.state()[1]), "numpy": numpy}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Randomness:
        numpy = plain["numpy"]
        if isinstance(numpy, torch.Tensor):
            numpy = numpy.numpy().tobytes()
        elif numpy is not None:
            state = {
                name: value.numpy().astype("uint32") if isinstance(value, torch.Tensor) else value
                for name, value in numpy["state"].items()
            }
            numpy = {**numpy, "state": state}
        version, _, gauss = random.getstate()
        python = Told((version, tuple(plain["python"]), gauss))
        return cls(plain["torch"], tuple(plain["cuda"]), python, numpy)

    def numpy_drawn(self) -> bool:
        """Whether somebody drew a number from numpy since."""
        if isinstance(self.numpy, bytes) or self.numpy is None:
            return bool(_numpy_state(False) != self.numpy)
        before, now = self.numpy["state"], _numpy_state(True)["state"]
        equal = sys.modules["numpy"].array_equal
        return not all(equal(before[name], now[name]) for name in now)

    def restore(self) -> None:
        torch.set_rng_state(self.torch)
        if self.cuda:
            torch.cuda.set_rng_state_all(list(self.cuda))
        random.setstate(self.python.state())
        _set_numpy_state(self.numpy)


def _plain(value: Any) -> Any:
    return torch.from_numpy(value.astype("int64")) if hasattr(value, "astype") else value


def _numpy_state(exactly: bool) -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    legacy = numpy.random.mtrand._rand
    generator = legacy._bit_generator
    if exactly or type(generator).__name__ != "MT19937":
        return legacy.get_state(legacy=False)
    if generator is not _LAID_AT[0]:
        _LAID_AT[:] = generator, generator.ctypes.state_address
    return ctypes.string_at(_LAID_AT[1], _MERSENNE_BYTES)


def _set_numpy_state(state: Any) -> None:
    if state is None:
        return
    legacy = sys.modules["numpy"].random.mtrand._rand
    if isinstance(state, bytes):
        ctypes.memmove(legacy._bit_generator.ctypes.state_address, state, len(state))
    else:
        legacy.set_state(state)


Slot = tuple[nn.Module, str]


@dataclass(slots=True)
class NetworkState:
    """The buffers and attributes of one network at the moment it was called."""

    known: Known
    buffers: list[tuple[nn.Module, str, torch.Tensor, int, torch.Tensor]]
    """(module, name, the buffer, its version, its value then)."""
    attributes: list[tuple[nn.Module, str, Any, Any]]
    """(module, name, the value, for a container a copy of it, for a generator its state)."""

    def put_in(self) -> None:
        """Give the network what it had then, in objects of its own: the user's are not written to."""
        with torch.no_grad():
            for module, name, _, _, value in self.buffers:
                module._buffers[name] = value.clone()
        for module, name, value, twin in self.attributes:
            if isinstance(twin, Drawn):
                twin.put_back(value)
            module.__dict__[name] = value if twin is None or isinstance(twin, Drawn) else copy.copy(twin)


@dataclass(slots=True)
class Known:
    """What is known of a network from earlier calls."""

    root: weakref.ref[nn.Module]
    calls: int = 0
    modules: tuple[nn.Module, ...] = ()
    changing_buffers: tuple[Slot, ...] = ()
    changing_attributes: tuple[Slot, ...] = ()
    room: tuple[torch.Tensor, ...] = ()
    """Memory for the values of the changing buffers, used anew at every step."""


class Networks:
    """Holds the state of every network that is called, as little of it as is needed."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], Known] = {}

    def take(self, root: nn.Module, *, reuse: bool = True) -> NetworkState | None:
        """The state of a network about to be called; None when it has none that changes.

        `reuse` the memory of the last call's values, when nobody can need them any more.
        """
        key = (id(root), root.training)
        known = self._known.get(key)
        if known is None or known.root() is not root:
            known = self._known[key] = Known(weakref.ref(root))
        if known.calls < _LEARNING_CALLS:
            return _everything(known, root)
        if not known.changing_buffers and not known.changing_attributes:
            return None
        pairs = [(module, name, module._buffers.get(name)) for module, name in known.changing_buffers]
        there = [(module, name, buffer) for module, name, buffer in pairs if buffer is not None]
        values = [buffer.detach() for _, _, buffer in there]
        room = known.room
        same = len(room) == len(values) and all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(room, values))
        if not reuse or not same:
            room = known.room = tuple(value.clone() for value in values)
        elif values:
            with torch.no_grad():
                torch._foreach_copy_(list(room), values)
        buffers = [
            (module, name, buffer, _version(buffer), value) for (module, name, buffer), value in zip(there, room)
        ]
        attributes = [_attribute(module, name) for module, name in known.changing_attributes if name in vars(module)]
        return NetworkState(known, buffers, attributes)

    def learn(self, state: NetworkState) -> None:
        """The forward is over: remember what it changed."""
        known = state.known
        if known.calls >= _LEARNING_CALLS:
            return
        known.calls += 1
        changed = [
            (module, name)
            for module, name, buffer, version, _ in state.buffers
            if module._buffers.get(name) is not buffer or _version(buffer) != version
        ]
        known.changing_buffers = tuple(dict.fromkeys((*known.changing_buffers, *changed)))
        moved = [(module, name) for module, name, value, twin in state.attributes if _moved(module, name, value, twin)]
        known.changing_attributes = tuple(dict.fromkeys((*known.changing_attributes, *moved)))


def _everything(known: Known, root: nn.Module) -> NetworkState:
    modules = tuple(root.modules())
    with torch.no_grad():
        buffers = [
            (module, name, buffer, _version(buffer), buffer.detach().clone())
            for module in modules
            for name, buffer in (module._buffers.items() if has_parts(module) else ())
            if buffer is not None
        ]
    attributes = [_attribute(module, name) for module in modules for name in vars(module) if name not in _OF_TORCH]
    return NetworkState(known, buffers, attributes)


def has_parts(thing: Any) -> bool:
    """Whether this is a module that keeps its buffers in Python: a scripted one does not."""
    return isinstance(thing, nn.Module) and isinstance(vars(thing).get("_buffers"), dict)


def _attribute(module: nn.Module, name: str) -> tuple[nn.Module, str, Any, Any]:
    value = vars(module)[name]
    if is_generator(value):
        return module, name, value, Drawn.of(value)
    holds = isinstance(value, CONTAINERS) and len(value) <= _LARGEST_CONTAINER
    return module, name, value, copy.copy(value) if holds else None


def _moved(module: nn.Module, name: str, value: Any, twin: Any) -> bool:
    now: Any = vars(module).get(name)
    if now is not value:
        return True
    if twin is None:
        return False
    if isinstance(twin, Drawn):
        return not twin.same(Drawn.of(value))
    if len(twin) != len(value):
        return True
    if isinstance(value, dict):
        return any(value.get(key) is not item for key, item in twin.items())
    if isinstance(value, set):
        return bool(value != twin)
    return any(before is not after for before, after in zip(twin, value))


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
